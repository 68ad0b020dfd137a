"""Plain Parquet files: other programs read them, and each table has one representation."""

import hashlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Profiles
from taciturn.release import layout, plain_parquet
from taciturn.release.layout import GROUP_ROWS
from taciturn.release.plain_parquet import PlainTable, decode, encode
from taciturn.release.tables import profiles_from_parquet, table_bytes


def make_table(
    rows: int, width: int, ids: str = "signed", *, variances: bool = False
) -> PlainTable:
    source = np.random.default_rng(rows)
    columns = {
        "bias": source.normal(size=rows).astype(np.float32),
        "profile": source.normal(size=(rows, width)).astype(np.float32),
    }
    if variances:
        columns |= {
            "bias_variance": source.random(rows, dtype=np.float32),
            "profile_variance": source.random((rows, width), dtype=np.float32),
        }
    made: dict[str, npt.NDArray[Any] | list[str]] = {
        "signed": np.arange(rows) * 3 - 7,
        "unsigned": np.arange(rows, dtype=np.uint64) + np.uint64(2**63),
        "text": [f"ü{number}" * (number % 3) + f"𝛼{number}" for number in range(rows)],
    }
    return PlainTable(id_name="item_id", ids=made[ids], columns=columns)


def widths(table: PlainTable) -> dict[str, int | None]:
    return {
        name: None if values.ndim == 1 else values.shape[1]
        for name, values in table.columns.items()
    }


def decoded(content: bytes, table: PlainTable) -> PlainTable:
    return decode(content, "items.parquet", table.id_name, len(table.ids), widths(table))


def equal(left: PlainTable, right: PlainTable) -> bool:
    """Equality of every bit of two tables."""
    return (
        list(left.ids) == list(right.ids)
        and list(left.columns) == list(right.columns)
        and all(
            values.shape == right.columns[name].shape
            and values.tobytes() == right.columns[name].tobytes()
            for name, values in left.columns.items()
        )
    )


SHAPES = [
    (1, 0, "signed", False),
    (3, 1, "text", True),
    (10, 2, "unsigned", False),
    (GROUP_ROWS, 2, "signed", False),
    (GROUP_ROWS + 1, 3, "text", True),
    (2 * GROUP_ROWS + 9, 0, "text", False),
]


@pytest.mark.parametrize(("rows", "width", "ids", "variances"), SHAPES)
def test_an_encoded_table_is_decoded_unchanged(
    rows: int, width: int, ids: str, variances: bool
) -> None:
    table = make_table(rows, width, ids, variances=variances)
    content = encode(table)
    found = decoded(content, table)
    assert equal(found, table)
    assert encode(found) == content


def with_pyarrow(content: bytes) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pyarrow.parquet.read_table(io.BytesIO(content)).to_pydict()
    return columns


def with_polars(content: bytes) -> dict[str, list[Any]]:
    return pl.read_parquet(io.BytesIO(content)).to_dict(as_series=False)


def with_pandas(content: bytes) -> dict[str, list[Any]]:
    frame = pd.read_parquet(io.BytesIO(content))
    return {
        name: [each.tolist() if isinstance(each, np.ndarray) else each for each in frame[name]]
        for name in frame.columns
    }


@pytest.mark.slow
@pytest.mark.parametrize("read", [with_pyarrow, with_polars, with_pandas])
@pytest.mark.parametrize(("rows", "width", "ids", "variances"), SHAPES)
def test_other_programs_read_the_same_values(
    rows: int,
    width: int,
    ids: str,
    variances: bool,
    read: Callable[[bytes], dict[str, list[Any]]],
) -> None:
    table = make_table(rows, width, ids, variances=variances)
    found = read(encode(table))
    assert list(found) == ["item_id", *table.columns]
    assert found["item_id"] == list(table.ids)
    for name, values in table.columns.items():
        assert found[name] == values.tolist()


def test_the_file_has_what_the_specification_names_and_nothing_else() -> None:
    table = make_table(GROUP_ROWS + 5, 2, "text", variances=True)
    file = pyarrow.parquet.ParquetFile(io.BytesIO(encode(table)))
    metadata = file.metadata
    assert metadata.metadata is None and metadata.created_by == "taciturn version 1.0.0"
    assert metadata.num_row_groups == 2 and metadata.row_group(1).num_rows == 5
    assert all(field.nullable is False for field in file.schema_arrow)
    for group in range(2):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            assert chunk.compression == "UNCOMPRESSED" and not chunk.has_dictionary_page
            assert set(chunk.encodings) == {"PLAIN", "RLE"} and chunk.statistics is None
            assert not chunk.has_column_index and not chunk.has_offset_index


GOLDEN = [
    "d3c2788b5e3abaa8ca4a3c5c9c215f2daffe3849902a7bb2abfe817a0000ad6a",
    "01cd8cd923bf5abdaf93573129ca5a839da204d1dbe78d7dcf0d8489128e325c",
    "d50c30ff4d63e541784fabfc0dbbad65b7e55996e3d76bcbd94ee816302853a6",
]


def test_the_bytes_of_a_table_do_not_depend_on_the_version_of_any_library() -> None:
    """Releases of different versions of polars and NumPy are compared by their checksums."""
    columns = {
        "bias": np.array([0.5, -1.25, 3.0], dtype=np.float32),
        "profile": np.arange(6, dtype=np.float32).reshape(3, 2),
    }
    digests = [
        hashlib.sha256(encode(PlainTable(id_name="user_id", ids=ids, columns=columns))).hexdigest()
        for ids in (np.array([-1, 0, 2**40]), np.array([1, 2, 2**63], np.uint64), ["a", "", "é"])
    ]
    assert digests == GOLDEN


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@st.composite
def tables(draw: st.DrawFn) -> PlainTable:
    rows, width = draw(st.integers(1, 40)), draw(st.integers(0, 9))
    numbers = draw(st.lists(FLOATS, min_size=1, max_size=20))
    ids: Any = draw(
        st.one_of(
            st.lists(st.text(max_size=200), min_size=rows, max_size=rows),
            st.lists(st.integers(-(2**63), 2**63 - 1), min_size=rows, max_size=rows),
            st.lists(st.integers(0, 2**64 - 1), min_size=rows, max_size=rows),
        )
    )
    if isinstance(ids[0], int):
        ids = np.array(ids, dtype=np.int64 if max(ids) < 2**63 else np.uint64)
    columns = {
        "bias": np.resize(np.array(numbers, np.float32), rows),
        "profile": np.resize(np.array(numbers[::-1], np.float32), (rows, width)),
    }
    return PlainTable(
        id_name=draw(st.sampled_from(["user_id", "item_id"])), ids=ids, columns=columns
    )


@given(table=tables(), group_rows=st.integers(1, 50))
def test_any_table_survives_in_row_groups_of_any_size(table: PlainTable, group_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", group_rows)
        content = encode(table)
        assert equal(decoded(content, table), table)
    frame = pl.read_parquet(io.BytesIO(content))
    assert frame[table.id_name].to_list() == list(table.ids)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt32, pl.Int32, pl.Int64, pl.UInt64])
def test_integer_ids_are_read_in_64_bits(dtype: Any) -> None:
    ids = pl.Series("user_id", [3, 1, 2], dtype=dtype)
    profiles = Profiles(ids=ids, biases=np.zeros(3), factors=np.ones((3, 2)))
    content = table_bytes(profiles, "user_id")
    found = profiles_from_parquet(
        content, "users.parquet", "user_id", count=3, width=2, has_variances=False
    )
    assert found.ids.to_list() == [3, 1, 2]
    assert found.ids.dtype == (pl.UInt64 if dtype == pl.UInt64 else pl.Int64)
    assert found.factors.dtype == found.biases.dtype == np.float32


def test_a_page_that_no_header_can_describe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(5, 3, "text")
    content = encode(table)
    monkeypatch.setattr(plain_parquet, "PAGE_MAX", 60)
    with pytest.raises(InvalidDocument, match="must take less than 2 GiB"):
        encode(table)
    with pytest.raises(InvalidDocument, match="larger than the format allows"):
        decoded(content, table)
