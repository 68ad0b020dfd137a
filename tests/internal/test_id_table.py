"""Tables of ids, compared with a join."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn._internal import ids as module
from taciturn._internal.ids import IdTable, find_rows
from taciturn.errors import InvalidDocument

NUMBERS = st.integers(-5, 30)
TEXTS = st.sampled_from(["", "a", "b", "A", "é", "10", "007", "7", "longer than a word"])


@given(st.lists(NUMBERS, min_size=1), st.lists(st.one_of(NUMBERS, st.none())))
def test_rows_of_numbers_are_those_of_a_join(table: list[int], wanted: list[int | None]) -> None:
    """Unsorted tables with repeated ids, of which the first row counts."""
    known, asked = pl.Series(table, dtype=pl.Int64), pl.Series(wanted, dtype=pl.Int64)
    assert np.array_equal(IdTable(known).find(asked, "a"), find_rows(asked, known, "a"))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt64])
def test_one_number_has_the_row_that_a_series_of_it_has(dtype: pl.DataType) -> None:
    """Also near the bounds of 64-bit numbers, which floats would confuse."""
    numbers = [7, 3, 100] if dtype == pl.Int8 else [7, 3, 2**62 + 1, 2**63 - 1, 2**63 - 2]
    numbers += [2**63, 2**64 - 1] if dtype == pl.UInt64 else [-1]
    table = IdTable(pl.Series(numbers, dtype=dtype))
    for row, number in enumerate(numbers):
        assert table.row_of(number) == row
    for missing in (4, 2**62, 2**65, -(2**70), 200, -2):
        assert table.row_of(missing) is None


@pytest.mark.parametrize("ids", [["7", "8"], [7, None], []])
def test_one_number_is_not_looked_up_in_other_tables(ids: list[Any]) -> None:
    assert IdTable(pl.Series(ids, dtype=None if ids else pl.Int64)).row_of(7) is None


@given(st.lists(TEXTS, min_size=1), st.lists(st.one_of(TEXTS, st.none())))
def test_rows_of_text_are_those_of_a_join(table: list[str], wanted: list[str | None]) -> None:
    known, asked = pl.Series(table, dtype=pl.String), pl.Series(wanted, dtype=pl.String)
    assert np.array_equal(IdTable(known).find(asked, "a"), find_rows(asked, known, "a"))


@given(st.lists(TEXTS, min_size=1), st.lists(TEXTS))
def test_texts_with_equal_hashes_are_told_apart(table: list[str], wanted: list[str]) -> None:
    """A stranger may choose ids with equal hashes."""
    known, asked = pl.Series(table, dtype=pl.String), pl.Series(wanted, dtype=pl.String)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl.Series, "hash", lambda self: pl.Series([1] * len(self), dtype=pl.UInt64))
        assert np.array_equal(IdTable(known).find(asked, "a"), find_rows(asked, known, "a"))


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (pl.Series([3, 2, 250], dtype=pl.UInt8), [250, 3, 2**40, -1]),
        (pl.Series([2**63, 5], dtype=pl.UInt64), [5, 2**63, 6]),
        (pl.Series([3, 7, -2]), ["3", "7", "-2", "8"]),
        (pl.Series(["3", "7"]), [3, 7, 8]),
        (pl.Series([3, None, 7]), [7, None, 3, 4]),
        (pl.Series(["a", None]), ["a", None, "b"]),
        (pl.Series([], dtype=pl.Int64), [1, 2]),
        (pl.Series([1, 2]), []),
    ],
)
def test_ids_are_cast_to_the_type_of_the_table(table: pl.Series, wanted: list[Any]) -> None:
    asked = pl.Series(wanted) if wanted else pl.Series([], dtype=pl.Int64)
    assert np.array_equal(IdTable(table).find(asked, "a"), find_rows(asked, table, "a"))


@pytest.mark.parametrize("table", [pl.Series([1, 2]), pl.Series(["1", "2"])])
def test_ids_of_another_kind_are_refused(table: pl.Series) -> None:
    with pytest.raises(InvalidDocument, match=r"the ids in a file must be"):
        IdTable(table).find(pl.Series([1.5]), "a file")


def test_the_index_is_built_once_and_shares_sorted_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    built, build = [], module._Sorted.of

    def counted(keys: Any) -> Any:
        built.append(build(keys))
        return built[-1]

    monkeypatch.setattr(module._Sorted, "of", counted)
    known = pl.Series(np.arange(1_000))
    table = IdTable(known)
    assert not built
    for wanted in (5, 7, 2_000):
        table.find(pl.Series([wanted]), "a")
    assert len(built) == 1
    assert np.shares_memory(built[0].keys, known.to_numpy()) and built[0].rows is None
