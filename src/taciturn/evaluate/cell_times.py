"""Order of the runs of a comparison, and how much of their time has passed.

Runs differ in time by a factor of a hundred, mostly with their solver and unit. So one run of each
kind comes first, the slowest kinds before the others: after a few runs most of the time is known.
"""

from collections.abc import Iterable
from statistics import fmean

from taciturn.accounting.units import Unit
from taciturn.evaluate.plan import Cell

Kind = tuple[str, Unit | None]

_MEASURING = 1.0
"""Time to split the ratings and measure a fit, in the units of `_TRAINING`."""

_TRAINING: dict[Kind, float] = {
    ("als", Unit.VALUE): 12.0,
    ("input-perturbation", Unit.VALUE): 8.0,
    ("paper", Unit.VALUE): 2.5,
    ("non-private", None): 1.5,
}
"""Usual times of training, which only determine an order and the estimate before a run."""

_OTHER = 0.5
"""Usual time of training of any other kind."""


def kind_of(cell: Cell) -> Kind:
    """Solver and unit of a run."""
    return cell.solver, cell.unit


def usual_time(kind: Kind) -> float:
    """Time of a run before any was measured, in arbitrary units."""
    return _MEASURING + _TRAINING.get(kind, _OTHER)


def ordered(cells: Iterable[Cell]) -> list[Cell]:
    """Cells with one of each kind first, the slowest first; the others as they are given."""
    cells = list(cells)
    firsts: dict[Kind, Cell] = {}
    for cell in cells:
        firsts.setdefault(kind_of(cell), cell)
    chosen = sorted(firsts.values(), key=lambda cell: -usual_time(kind_of(cell)))
    return chosen + [cell for cell in cells if cell != firsts[kind_of(cell)]]


class CellTimes:
    """Times of finished runs, and the share of all time that they are."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left = list(cells)
        self._measured: dict[Kind, list[float]] = {}

    def add(self, cell: Cell, seconds: float) -> None:
        """Add the time of a finished run."""
        self._left.remove(cell)
        self._measured.setdefault(kind_of(cell), []).append(seconds)

    @property
    def share(self) -> float:
        """Estimated share of the time of all runs that has passed."""
        spent = sum(map(sum, self._measured.values()))
        if not self._left:
            return 1.0
        return spent / (spent + sum(self._expected(kind_of(cell)) for cell in self._left))

    def _expected(self, kind: Kind) -> float:
        """Expected time of a run: that of its kind, or of all kinds in proportion."""
        if kind in self._measured:
            return fmean(self._measured[kind])
        usual = sum(map(usual_time, self._measured))
        if not usual:
            return usual_time(kind)
        seen = sum(map(fmean, self._measured.values()))
        return usual_time(kind) * seen / usual
