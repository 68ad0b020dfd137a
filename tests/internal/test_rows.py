"""Compiled steps on the ratings of each row, compared with slow references."""

import numpy as np
import numpy.typing as npt
import pytest

from taciturn import _core
from taciturn._internal.rows import row_products, tabulated, tabulated_sums
from taciturn.queries.user_sums import _bounded_sum
from taciturn.solvers.descent import DescentSteps

COUNTS = [0, 1, 7, 8, 9, 0, 15, 16, 17, 40, 3]
WIDTH = 50


@pytest.fixture(autouse=True, params=_core.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> str:
    """Each instruction set of this processor in turn."""
    before, name = _core.instruction_set(), str(request.param)
    _core.use_instruction_set(name)
    request.addfinalizer(lambda: _core.use_instruction_set(before))
    return name


def _rows(random: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    columns = [np.sort(random.choice(WIDTH, count, replace=False)) for count in COUNTS]
    starts = np.concatenate([[0], np.cumsum(COUNTS)]).astype(np.int64)
    return starts, np.concatenate(columns).astype(np.int32)


def test_products_with_the_pattern_agree_with_a_loop() -> None:
    random = np.random.default_rng(1)
    (starts, columns), values = _rows(random), random.normal(size=WIDTH)
    found = row_products(starts, columns, values)
    for row, sum_of_row in enumerate(found):
        expected = sum(values[column] for column in columns[starts[row] : starts[row + 1]])
        assert abs(sum_of_row - expected) < 1e-12


def test_a_product_has_the_same_bits_alone_and_on_every_instruction_set() -> None:
    random = np.random.default_rng(2)
    (starts, columns), values = _rows(random), random.normal(size=WIDTH)
    found = row_products(starts, columns, values, threads=3)
    _core.use_instruction_set("portable")
    for row in range(len(COUNTS)):
        alone = columns[starts[row] : starts[row + 1]]
        ends = np.array([0, alone.size], dtype=np.int64)
        assert row_products(ends, alone, values, threads=1)[0] == found[row]


def test_a_column_out_of_range_is_refused() -> None:
    starts, columns = _rows(np.random.default_rng(3))
    with pytest.raises(IndexError, match="no features"):
        row_products(starts, columns, np.zeros(int(columns.max())))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_keys_outside_a_table_are_clipped_to_its_ends(dtype: type[np.generic]) -> None:
    keys = np.array([0, 1, 2, 3, 4, 250], dtype=dtype)
    found = tabulated(keys, np.array([10, 20, 30], dtype=np.int32), lowest=1)
    assert found.tolist() == [10, 10, 20, 30, 30, 30]


def test_negative_keys_find_their_place() -> None:
    keys = np.array([-5, -2, 0, 3], dtype=np.int32)
    found = tabulated(keys, np.array([0.5, 1.5, 2.5], dtype=np.float32), lowest=-2)
    assert found.tolist() == [0.5, 0.5, 2.5, 2.5]


def test_sums_of_a_function_agree_with_a_loop() -> None:
    random = np.random.default_rng(4)
    starts, columns = _rows(random)
    keys = random.integers(-9, 9, size=columns.size).astype(np.int32)
    values = random.integers(-(2**40), 2**40, size=11)
    found = tabulated_sums(starts, keys, values, lowest=-5, threads=2)
    for row, sum_of_row in enumerate(found):
        part = keys[starts[row] : starts[row + 1]]
        assert sum_of_row == sum(int(values[min(max(key + 5, 0), 10)]) for key in part)


def _slow_sum(
    weights: npt.NDArray[np.float64],
    columns: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float64],
    width: int,
) -> npt.NDArray[np.int64]:
    """Bounded sum of covariances, in whole tables."""
    one = 1 << 24
    with np.errstate(all="ignore"):
        scaled = columns * (weights[:, None] * scales).astype(np.float32)
        both = np.column_stack([weights, scaled * (1 - 2.0**-16)]) * one
    both[~(np.abs(both) <= one)] = 0
    steps = np.trunc(both).astype(np.int64)
    steps[(steps * steps).sum(axis=1) > width * one * one] = 0
    total: npt.NDArray[np.int64] = steps.sum(axis=0)
    return total


def test_covariances_are_summed_as_in_whole_tables() -> None:
    random = np.random.default_rng(5)
    weights, scales = random.uniform(0, 1, 200), random.uniform(0.5, 1.5, 12)
    columns = random.normal(size=(200, 12)).astype(np.float32)
    columns[3, 4], columns[5, 6], columns[7, 8] = np.nan, np.inf, 1e30
    columns[9] *= 0.1
    for width in (1, 2, 30):
        found = _bounded_sum(weights, columns, scales, width, threads=2)
        expected = _slow_sum(weights, columns.astype(np.float32), scales, width)
        assert np.array_equal(found, expected)
        assert found[0] > 0


@pytest.mark.parametrize("factors", [0, 1, 8, 15, 24])
def test_a_step_of_descent_agrees_with_normal_equations(factors: int) -> None:
    random, count = np.random.default_rng(factors), 70
    steps = DescentSteps(factors=factors, iterations=20)
    rows, gradient, centre = random.normal(size=(3, count, 1 + factors))
    counts, weight = random.uniform(0.1, 500, count), random.uniform(0.2, 1, count)
    half = random.normal(size=(1 + factors, 1 + factors))
    curvature, precision = half @ half.T, random.uniform(0.5, 2, count)
    found = steps.descended(
        rows,
        gradient,
        noise=3.0,
        counts=counts,
        curvature=curvature,
        weight=weight,
        centre=centre,
        precision=precision,
    )
    system = steps.equations(
        variance=np.full(1 + factors, 9.0 / steps.releases_averaged),
        counts=counts,
        curvature=curvature,
        weight=weight,
    )
    added, inside = system.added * precision[:, None], steps.whitened(rows) @ system.axes
    pull = gradient @ system.transform + added * (inside - steps.whitened(centre) @ system.axes)
    inside -= steps.step_size * pull / (system.bend + added)
    assert np.allclose(found, steps.from_whitened(inside @ system.axes.T), rtol=1e-9, atol=1e-9)
