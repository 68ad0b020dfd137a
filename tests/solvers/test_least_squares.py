"""Compiled least squares by row, compared with NumPy."""

from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pytest

from taciturn import _core
from tests.instruction_sets import every_set

COLUMNS = 70


class Equations(TypedDict):
    """Arguments of the kernel."""

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    targets: npt.NDArray[np.float32]
    counterparts: npt.NDArray[np.float32]
    by_count: npt.NDArray[np.float64]
    fixed: npt.NDArray[np.float64]


def problem(width: int) -> Equations:
    """Random equations of rows with 0 to 300 entries."""
    random = np.random.default_rng(width)
    counts = np.array([3, 0, 1, 64, 65, 300, 129, 17])
    starts = np.concatenate([[0], np.cumsum(counts)])
    return {
        "starts": starts,
        "columns": random.integers(0, COLUMNS, starts[-1], dtype=np.int32),
        "targets": random.normal(size=starts[-1]).astype(np.float32),
        "counterparts": random.normal(size=(COLUMNS, width)).astype(np.float32),
        "by_count": random.uniform(0, 0.1, width),
        "fixed": random.uniform(0.5, 2, width),
    }


def solve(
    given: Equations, inverse: npt.NDArray[np.float32] | None = None
) -> npt.NDArray[np.float32]:
    rows, width = given["starts"].size - 1, given["counterparts"].shape[1]
    out = np.full((rows, width), np.nan, dtype=np.float32)
    if inverse is None:
        inverse = np.empty((rows, 0), dtype=np.float32)
    for part in ((0, 3), (3, rows)):
        _core.ridge_rows(**given, out=out, inverse=inverse, begin=part[0], end=part[1])
    return out


def equations(
    given: Equations, row: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Matrix and right-hand side of a row's normal equations."""
    begin, end = given["starts"][row : row + 2]
    features = given["counterparts"][given["columns"][begin:end]].astype(np.float64)
    rest = given["targets"][begin:end] - features[:, 0]
    features[:, 0] = 1
    ridge = np.diag((end - begin) * given["by_count"] + given["fixed"])
    return features.T @ features + ridge, features.T @ rest


def exact(given: Equations, row: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.linalg.solve(*equations(given, row)))


@every_set
@pytest.mark.parametrize("width", [1, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 65, 100])
def test_rows_agree_with_the_reference(width: int) -> None:
    given = problem(width)
    found = solve(given)
    for row in range(len(found)):
        np.testing.assert_allclose(found[row], exact(given, row), rtol=1e-4, atol=1e-4)


@every_set
@pytest.mark.parametrize(("width", "count"), [(1, 0), (5, 4), (9, 3), (17, 16), (40, 8)])
def test_columns_of_inverses_agree_with_the_reference(width: int, count: int) -> None:
    given = problem(width)
    rows = given["starts"].size - 1
    inverse = np.full((rows, count * width), np.nan, dtype=np.float32)
    solve(given, inverse)
    for row, found in enumerate(inverse.reshape(rows, count, width)):
        is_empty = given["starts"][row] == given["starts"][row + 1]
        expected = np.linalg.inv(equations(given, row)[0])[1 : 1 + count]
        np.testing.assert_allclose(found, 0 if is_empty else expected, rtol=1e-3, atol=1e-4)


@every_set
@pytest.mark.parametrize(("regularization", "error"), [(0.03, 1e-5), (1e-4, 1e-3)])
def test_sums_in_floats_are_precise_enough(regularization: float, error: float) -> None:
    """The error grows as regularization shrinks; its maxima are those of decision 14."""
    random, width = np.random.default_rng(5), 21
    given = problem(width)
    given["columns"] = np.concatenate(
        [random.permutation(400)[:count] for count in np.diff(given["starts"])]
    ).astype(np.int32)
    given["counterparts"] = random.normal(size=(400, width)).astype(np.float32)
    given["by_count"] = np.full(width, regularization)
    given["fixed"] = np.full(width, 200 * regularization)
    found = solve(given)
    for row in range(len(found)):
        expected = exact(given, row)
        assert np.linalg.norm(found[row] - expected) <= error * np.linalg.norm(expected)


@every_set
def test_a_row_without_a_unique_solution_becomes_zero() -> None:
    given = problem(5)
    given["by_count"], given["fixed"] = np.zeros(5), np.zeros(5)
    given["counterparts"][:, 1:] = 0
    assert not solve(given).any()


@every_set
def test_columns_out_of_range_are_refused() -> None:
    given = problem(5)
    given["columns"][7] = COLUMNS
    with pytest.raises(IndexError, match="no features"):
        solve(given)
