"""Order of the runs of a comparison, and estimates of the time that is left."""

import pytest

from taciturn.accounting.units import Unit
from taciturn.evaluate.cell_times import CellTimes, Kind, kind_of, ordered
from taciturn.evaluate.plan import Plan

SECONDS: dict[str, dict[Kind, float]] = {
    "MovieLens-1M": {
        ("als", Unit.VALUE): 17.0,
        ("gradient", Unit.VALUE): 1.5,
        ("bias", Unit.VALUE): 1.0,
        ("input-perturbation", Unit.VALUE): 9.0,
        ("paper", Unit.VALUE): 4.0,
        ("non-private", None): 2.0,
    },
    "many rows": {
        ("als", Unit.VALUE): 150.0,
        ("gradient", Unit.VALUE): 9.0,
        ("bias", Unit.VALUE): 6.0,
        ("input-perturbation", Unit.VALUE): 30.0,
        ("paper", Unit.VALUE): 12.0,
        ("non-private", None): 10.0,
    },
}
"""Times of a run of each kind; others take a second."""


@pytest.mark.parametrize("seconds", SECONDS.values(), ids=SECONDS.keys())
@pytest.mark.parametrize("units", [("value",), ("rating",), ("value", "rating", "user")])
def test_after_three_runs_the_time_left_is_right_within_a_factor_of_two(
    units: tuple[Unit, ...], seconds: dict[Kind, float]
) -> None:
    cells = ordered(Plan(units=tuple(map(Unit, units))).cells)
    times, taken = CellTimes(cells), [seconds.get(kind_of(cell), 1.0) for cell in cells]
    for number, (cell, each) in enumerate(zip(cells, taken, strict=True)):
        if number >= 3:
            spent = sum(taken[:number])
            left = spent * (1 - times.share) / times.share
            assert sum(taken[number:]) / 2 < left < 2 * sum(taken[number:])
        times.add(cell, each)
    assert times.share == 1


def test_every_run_is_in_the_order_once_and_every_kind_early() -> None:
    plan = Plan(units=(Unit.RATING, Unit.USER))
    cells = ordered(plan.cells)
    assert len(cells) == len(plan.cells) and set(cells) == set(plan.cells)
    kinds = {kind_of(cell) for cell in cells}
    assert {kind_of(cell) for cell in cells[: len(kinds)]} == kinds
    assert {cell.seed for cell in cells[: len(kinds)]} == {plan.first_seed}


def test_no_share_has_passed_before_the_first_run() -> None:
    assert CellTimes(Plan().cells).share == 0
