"""Ridge regression by row: a row's bits depend on its own targets alone.

The proof of unit `user` needs this of every other user when one user's ratings change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from taciturn import _core
from taciturn._internal.ridge import solve_rows
from tests.instruction_sets import every_set

COUNTERPARTS, ROWS = 70, 60

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """Rows of targets, and everything that they are solved from."""

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    targets: Floats
    counterparts: npt.NDArray[np.float64]
    inverses: int

    @classmethod
    def random(cls, width: int, inverses: int) -> "Problem":
        """Rows without entries, and of up to five times the entries that are summed at once."""
        random = np.random.default_rng(width)
        counts = random.choice([0, 1, 2, 7, 16, 63, 64, 65, 130, 300], ROWS)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(
            starts=starts,
            columns=random.integers(0, COUNTERPARTS, starts[-1], dtype=np.int32),
            targets=random.normal(size=starts[-1]).astype(np.float32),
            counterparts=random.normal(size=(COUNTERPARTS, width)),
            inverses=inverses,
        )

    def solve(self, threads: int = 1) -> npt.NDArray[np.float64]:
        """Solution of every row, followed by its columns of the inverse."""
        rows, width = self.starts.size - 1, self.counterparts.shape[1]
        inverse = np.full((rows, self.inverses, width), np.nan, dtype=np.float32)
        found = solve_rows(
            self.starts,
            self.columns,
            self.targets,
            self.counterparts,
            by_count=np.full(width, 0.01),
            fixed=np.linspace(0.5, 2, width),
            inverse=inverse,
            threads=threads,
        )
        return np.hstack([found, inverse.reshape(rows, -1)])

    def range(self, begin: int, end: int) -> "Problem":
        """Consecutive rows, at the same places in memory."""
        return replace(self, starts=self.starts[begin : end + 1])

    def take(self, order: npt.NDArray[np.intp]) -> "Problem":
        """Chosen rows, copied in a chosen order."""
        parts = [np.arange(*self.starts[row : row + 2]) for row in order]
        places = np.concatenate(parts)
        starts = np.concatenate([[0], np.cumsum([part.size for part in parts])])
        return replace(
            self, starts=starts, columns=self.columns[places], targets=self.targets[places]
        )


def alone(problem: Problem) -> Iterator[npt.NDArray[np.float64]]:
    """Every row in a call of its own."""
    yield np.vstack([problem.take(np.array([row])).solve() for row in range(ROWS)])


def shifted(problem: Problem) -> Iterator[npt.NDArray[np.float64]]:
    """Ranges of rows that begin at another row."""
    for first in (1, 2, 3, 5, 8, 13, 59):
        yield np.vstack([problem.range(0, first).solve(), problem.range(first, ROWS).solve()])


def shuffled(problem: Problem) -> Iterator[npt.NDArray[np.float64]]:
    """Rows in other orders."""
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(ROWS)
        yield problem.take(order).solve()[np.argsort(order)]


def in_threads(problem: Problem) -> Iterator[npt.NDArray[np.float64]]:
    """Rows divided among threads."""
    for threads in (2, 3, 4, 7):
        yield problem.solve(threads)


Arranged = Callable[[Problem], Iterator[npt.NDArray[np.float64]]]

every_arrangement = pytest.mark.parametrize("arranged", [alone, shifted, shuffled, in_threads])


@every_set
@every_arrangement
@pytest.mark.parametrize(
    ("width", "inverses"), [(1, 0), (5, 4), (8, 0), (17, 16), (21, 0), (34, 3), (65, 0)]
)
def test_a_row_has_the_same_bits_however_rows_are_arranged(
    width: int, inverses: int, arranged: Arranged
) -> None:
    problem = Problem.random(width, inverses)
    expected = problem.solve()
    assert expected.any() and np.isfinite(expected).all()
    for found in arranged(problem):
        assert np.array_equal(found, expected)


@every_set
@pytest.mark.parametrize("width", [1, 5, 21, 34])
@pytest.mark.parametrize("bad", [1e30, np.inf, np.nan])
def test_a_row_changes_no_other_row(width: int, bad: float) -> None:
    problem = Problem.random(width, width - 1)
    expected, row = problem.solve(), int(np.argmax(np.diff(problem.starts)))
    targets = problem.targets.copy()
    targets[problem.starts[row] : problem.starts[row + 1]] = bad
    found = replace(problem, targets=targets).solve()
    others = np.arange(ROWS) != row
    assert np.array_equal(found[others], expected[others])
    assert not np.array_equal(found[row], expected[row])


@every_set
@every_arrangement
@pytest.mark.parametrize("output", [6, 7], ids=["rows", "inverses"])
def test_a_trace_of_the_previous_row_is_caught(
    monkeypatch: pytest.MonkeyPatch, arranged: Arranged, output: int
) -> None:
    """Planted bug: 10⁻⁷ of the row that a call solved before is added."""
    kernel = _core.ridge_rows

    def leaking(*arguments: Any) -> None:
        kernel(*arguments)
        *_, begin, end = arguments
        solved = arguments[output][begin:end]
        solved[1:] += np.float32(1e-7) * solved[:-1]

    monkeypatch.setattr(_core, "ridge_rows", leaking)
    problem = Problem.random(5, 4)
    expected = problem.solve()
    assert not all(np.array_equal(found, expected) for found in arranged(problem))
