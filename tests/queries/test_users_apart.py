"""Under unit `user` no user's term depends on other users, not even in its last bit.

The numbers of a user are the same bits whoever the others are. Answers are sums over users in
integers, so the answer for all users equals the sum of the answers for groups of users, exactly.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from taciturn import _core
from taciturn.data.pattern import Pattern
from taciturn.mechanisms.query import Table
from taciturn.queries import user_interest, user_sums
from taciturn.queries.features import AxisFeatures
from taciturn.queries.user_interest import (
    WEIGHT_MAX,
    Integers,
    InterestItems,
    UserInterestSums,
    bounded_rows,
)
from taciturn.queries.user_sums import UserSums
from taciturn.queries.values import GridValues
from tests.instruction_sets import every_set
from tests.queries.helpers import Floats, random_items, user_view
from tests.queries.helpers import user_sums as sums_of

USERS, ITEMS = 200, 40

Spec = UserSums | UserInterestSums


@dataclass(frozen=True)
class Found:
    """Numbers of every user before they are rounded, and the tables of an answer."""

    users: Floats
    tables: tuple[Table, ...]

    def is_same(self, other: "Found") -> bool:
        pairs = zip((self.users, *self.tables), (other.users, *other.tables), strict=True)
        return all(np.array_equal(one, two) for one, two in pairs)


def pattern_of(rated: npt.NDArray[np.bool_]) -> Pattern:
    starts = np.concatenate([[0], np.cumsum(rated.sum(axis=1))])
    return Pattern(starts, np.nonzero(rated)[1].astype(np.int32), rated.shape[1])


def values_of(users: Integers) -> GridValues:
    """Values of chosen users, in a chosen order; some users have no ratings, some rated all."""
    random, grid = np.random.default_rng(5), user_view().grid
    rated = random.random((USERS, ITEMS)) < random.choice([0, 0.1, 0.5, 1], USERS)[:, None]
    steps = random.integers(grid.lowest, grid.highest, rated.shape, np.int32, endpoint=True)
    rated, steps = rated[users], steps[users]
    return GridValues(
        view=user_view(),
        pattern=pattern_of(rated),
        steps=steps[rated],
        transposed=pattern_of(rated.T),
    )


def find(spec: Spec, users: Integers, threads: int = 1) -> Found:
    """Answer for chosen users, in a chosen order."""
    rows: list[Floats] = []

    class Features(AxisFeatures):
        def __init__(self, features: Floats, shrink: Floats, base: Floats) -> None:
            rows.append(np.column_stack([features, shrink, base]))
            super().__init__(features, shrink, base)

    def bounded(features: Floats, totals: Integers) -> npt.NDArray[np.int32]:
        rows.append(np.column_stack([features, totals]))
        return bounded_rows(features, totals)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(user_sums, "AxisFeatures", Features)
        patch.setattr(user_interest, "bounded_rows", bounded)
        return Found(tables=spec.exact(values_of(users), threads).tables, users=rows[0])


def joined(parts: Sequence[Found]) -> Found:
    """Users of several answers, and the sums of their tables."""
    tables = zip(*(part.tables for part in parts), strict=True)
    return Found(
        users=np.vstack([part.users for part in parts]),
        tables=tuple(sum(each[1:], each[0]) for each in tables),
    )


def alone(spec: Spec) -> Iterator[Found]:
    """Every user in a dataset of one."""
    yield joined([find(spec, np.array([user])) for user in range(USERS)])


def shifted(spec: Spec) -> Iterator[Found]:
    """Two datasets, of which the second begins at another user."""
    for first in (1, 2, 3, 5, 8, 13, USERS - 1):
        yield joined([find(spec, np.arange(first)), find(spec, np.arange(first, USERS))])


def shuffled(spec: Spec) -> Iterator[Found]:
    """Users in other orders."""
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(USERS)
        found = find(spec, order)
        yield replace(found, users=found.users[np.argsort(order)])


def in_threads(spec: Spec) -> Iterator[Found]:
    """Users divided among threads."""
    for threads in (2, 3, 4, 7):
        yield find(spec, np.arange(USERS), threads)


def in_blocks(spec: Spec) -> Iterator[Found]:
    """Users solved a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        for size in (1, 7, 64):
            patch.setattr(user_sums, "_BLOCK", size)
            yield find(spec, np.arange(USERS))


Arranged = Callable[[Spec], Iterator[Found]]

ARRANGEMENTS = [alone, shifted, shuffled, in_threads, in_blocks]


def is_apart(spec: Spec, arranged: Arranged) -> bool:
    expected = find(spec, np.arange(USERS))
    assert all(array.any() for array in (expected.users, *expected.tables))
    return all(found.is_same(expected) for found in arranged(spec))


def of_errors(width: int, features: int = 0) -> UserSums:
    random = np.random.default_rng(width)
    return sums_of(random_items(random, ITEMS, width, features=features))


def of_interest(by_liking: bool) -> UserInterestSums:
    random = np.random.default_rng(0)
    items = InterestItems(
        rows=random.normal(size=(ITEMS, 6)),
        weights=random.integers(1, WEIGHT_MAX, ITEMS, endpoint=True),
        constant=0.3,
        by_liking=by_liking,
    )
    return UserInterestSums(purpose="test", view=user_view(), items=items)


@every_set
@pytest.mark.parametrize("arranged", ARRANGEMENTS)
@pytest.mark.parametrize(("width", "features"), [(1, 0), (5, 2), (21, 0), (34, 0)])
def test_errors_of_users_are_summed_apart(width: int, features: int, arranged: Arranged) -> None:
    assert is_apart(of_errors(width, features), arranged)


@every_set
@pytest.mark.parametrize("arranged", ARRANGEMENTS[:-1])
@pytest.mark.parametrize("by_liking", [False, True])
def test_interests_of_users_are_summed_apart(by_liking: bool, arranged: Arranged) -> None:
    assert is_apart(of_interest(by_liking), arranged)


def add_previous(rows: npt.NDArray[Any]) -> None:
    """Planted bug: 10⁻⁷ of the previous row is added."""
    rows[1:] += rows.dtype.type(1e-7) * rows[:-1]


@every_set
@pytest.mark.parametrize("arranged", ARRANGEMENTS)
@pytest.mark.parametrize("output", [6, 7], ids=["rows", "inverses"])
def test_a_trace_of_the_previous_user_in_least_squares_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    arranged: Arranged,
    output: int,
) -> None:
    kernel = _core.ridge_rows

    def leaking(*arguments: Any) -> None:
        kernel(*arguments)
        *_, begin, end = arguments
        add_previous(arguments[output][begin:end])

    monkeypatch.setattr(_core, "ridge_rows", leaking)
    assert not is_apart(of_errors(34), arranged)


@pytest.mark.parametrize("arranged", [alone, shifted, shuffled])
def test_a_trace_of_the_previous_user_in_interests_is_caught(
    monkeypatch: pytest.MonkeyPatch, arranged: Arranged
) -> None:
    directions = user_interest.directions

    def leaking(sums: Integers) -> Floats:
        rows = directions(sums)
        add_previous(rows)
        return rows

    monkeypatch.setattr(user_interest, "directions", leaking)
    assert not is_apart(of_interest(by_liking=True), arranged)
