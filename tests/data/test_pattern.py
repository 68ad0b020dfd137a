"""The rating pattern: checked when built, and immutable."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data import pattern as module
from taciturn.data.pattern import Axis, Pattern, RatingPattern, frozen
from taciturn.errors import InvalidParameter
from tests.solvers.helpers import random_ratings

STARTS, COLUMNS, WIDTH = np.array([0, 2, 2, 5]), np.array([1, 3, 0, 1, 2], dtype=np.int32), 4
"""Three rows: counterparts 1 and 3, none, and 0 to 2."""


def build(**change: Any) -> Pattern:
    facts: dict[str, Any] = {"starts": STARTS, "columns": COLUMNS, "width": WIDTH}
    return Pattern(**(facts | change))


def test_a_pattern_knows_its_rows_and_entries() -> None:
    pattern = build()
    assert len(pattern) == 3 and pattern.entries == 5 and pattern.width == 4
    assert pattern.counts.tolist() == [2, 0, 3]
    assert pattern.entry_rows().tolist() == [0, 0, 2, 2, 2]
    assert pattern.ones().toarray().tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12))
def test_a_pattern_holds_the_pairs_it_was_built_from(seed: int, rows: int, width: int) -> None:
    """Empty rows are allowed at the start, at the end and in between."""
    rated = np.random.default_rng(seed).random((rows, width)) < 0.3
    starts = np.concatenate([[0], np.cumsum(rated.sum(axis=1))])
    pattern = build(starts=starts, columns=np.nonzero(rated)[1], width=width)
    assert np.array_equal(pattern.ones().toarray() == 1, rated)
    assert pattern.starts.dtype == np.int64 and pattern.columns.dtype == np.int32


def test_a_pattern_may_be_empty() -> None:
    nothing = np.empty(0, dtype=np.int32)
    assert len(Pattern(np.array([0]), nothing, 3)) == 0
    assert Pattern(np.array([0, 0, 0]), nothing, 0).counts.tolist() == [0, 0]


@pytest.mark.parametrize(
    "starts",
    [STARTS[:-1], STARTS + 1, STARTS[::-1], np.array([0]), np.empty(0, dtype=np.int64)],
)
def test_starts_that_do_not_rise_to_the_entries_are_refused(starts: Any) -> None:
    with pytest.raises(InvalidParameter, match="ascending, from 0"):
        build(starts=starts)


def test_starts_that_fall_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="ascending, from 0"):
        build(starts=np.array([0, 3, 2, 5]))


@pytest.mark.parametrize("bad", [-1, WIDTH, 2**31 - 1])
def test_columns_beyond_the_counterparts_are_refused(bad: int) -> None:
    for place in (1, 4):
        columns = COLUMNS.copy()
        columns[place] = bad
        with pytest.raises(InvalidParameter, match="counterparts"):
            build(columns=columns)


@pytest.mark.parametrize("columns", [[1, 1, 0, 1, 2], [1, 3, 0, 2, 2], [3, 1, 0, 1, 2], [0] * 5])
def test_a_repeated_pair_is_refused(columns: list[int]) -> None:
    """Unsorted columns are refused too: they could contain a repeated pair."""
    with pytest.raises(InvalidParameter, match="at most once"):
        build(columns=np.array(columns))


def test_arrays_that_are_not_integers_are_refused() -> None:
    for name in ("starts", "columns"):
        values: Any = {"starts": STARTS, "columns": COLUMNS}[name]
        for bad in (values.astype(np.float64), values.tolist(), values > 0):
            with pytest.raises(InvalidParameter, match=f"{name} must be an array of integers"):
                build(**{name: bad})
    with pytest.raises(InvalidParameter, match="columns must fit int32"):
        build(columns=COLUMNS.astype(np.int64) + 2**32)
    with pytest.raises(InvalidParameter, match="starts must fit int64"):
        build(starts=STARTS.astype(np.uint64) + np.uint64(2**63))


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES_MAX", 5)
    build()
    monkeypatch.setattr(module, "ENTRIES_MAX", 4)
    with pytest.raises(InvalidParameter, match="ratings"):
        build()


def test_a_pattern_cannot_be_changed() -> None:
    starts, columns = STARTS.copy(), COLUMNS.copy()
    pattern = Pattern(starts, columns, WIDTH)
    starts += 1
    columns += 1
    assert pattern.is_same(build())
    for array in (pattern.starts, pattern.columns):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(FrozenInstanceError):
        pattern.width = 9  # type: ignore[misc]


def test_only_memory_that_cannot_change_is_shared() -> None:
    own = COLUMNS.copy()
    own.flags.writeable = False
    assert frozen("columns", own, np.int32, is_shared=True) is own
    assert frozen("columns", own, np.int32) is not own
    writable = COLUMNS.copy()
    view = writable[:]
    view.flags.writeable = False  # the array it is a view of can still be written to
    for array in (writable, view, own[::2], own.astype(np.int64)):
        copy = frozen("columns", array, np.int32, is_shared=True)
        assert not np.shares_memory(copy, array)
        assert not copy.flags.writeable and copy.flags.c_contiguous and copy.dtype == np.int32
        assert np.array_equal(copy, array)


def test_patterns_of_the_same_pairs_are_the_same() -> None:
    pattern = build()
    assert pattern.is_same(pattern) and pattern.is_same(build())
    for change in (
        {"width": 5},
        {"starts": np.array([0, 1, 2, 5])},
        {"starts": np.array([0, 2, 2, 2, 5])},
        {"columns": np.array([1, 2, 0, 1, 2])},
        {"starts": np.array([0, 2, 2, 4]), "columns": COLUMNS[:4]},
    ):
        other = build(**change)
        assert not pattern.is_same(other) and not other.is_same(pattern)


def test_ratings_have_one_pattern_along_both_axes() -> None:
    ratings = random_ratings(1, users=9, items=6)
    pattern = ratings.pattern
    assert pattern is ratings.pattern and isinstance(pattern, RatingPattern)
    assert pattern.along(Axis.USERS) is pattern.by_user
    assert pattern.along(Axis.ITEMS) is pattern.by_item
    assert (len(pattern.by_user), pattern.by_user.width) == ratings.shape
    assert (len(pattern.by_item), pattern.by_item.width) == ratings.shape[::-1]
    assert pattern.entries == pattern.by_item.entries == len(ratings)
    by_user = pattern.by_user.ones().toarray()
    assert np.array_equal(by_user, pattern.by_item.ones().toarray().T)
    assert by_user[ratings.rows(), ratings.by_user.columns].all() and by_user.sum() == len(ratings)


def test_the_pattern_does_not_depend_on_the_values() -> None:
    ratings = random_ratings(1)
    other = ratings.replaced(np.arange(len(ratings)), np.ones(len(ratings)))
    for axis in Axis:
        assert ratings.pattern.along(axis).is_same(other.pattern.along(axis))


def test_an_axis_names_its_rows_and_its_counterpart() -> None:
    assert [axis.singular for axis in Axis] == ["user", "item"]
    assert [axis.other for axis in Axis] == [Axis.ITEMS, Axis.USERS]
