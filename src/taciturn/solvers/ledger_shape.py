"""Shape of a solver's ledger: which tables it releases, in which order, for which purposes.

Pure Python: a verifier compares a ledger with it without the solver itself. Every purpose in a
verified ledger is one that its solver records, so that no free text passes for part of the
guarantee.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.accounting import sampler
from taciturn.accounting.events import GaussianRelease, Rows
from taciturn.errors import InvalidDocument

STEPS_MAX = 10**6
"""More steps than any solver takes."""


@dataclass(frozen=True)
class TableShape:
    """One table: its purpose, in which {step} and {steps} stand for numbers, and its rows."""

    purpose: str
    rows: Rows


@dataclass(frozen=True)
class Phase:
    """Tables that are released in this order, once or in every step.

    A repeated phase whose purposes do not state the number of steps comes last.
    """

    tables: tuple[TableShape, ...]
    is_repeated: bool = False


@dataclass(frozen=True)
class LedgerShape:
    """Phases of a training, and the proof of all its bounds."""

    proof: str
    phases: tuple[Phase, ...]

    def check(self, events: Sequence[GaussianRelease]) -> None:
        """Raise unless these are the events of a complete training."""
        expected = self._expected(events)
        for event, table in zip(events, expected, strict=False):
            if event.purpose != table.purpose or event.proof != self.proof:
                raise InvalidDocument(
                    f"the ledger has an event that its solver does not record: it records "
                    f"{table.purpose!r} there"
                )
            noise = event.sampler_error, event.sampler_tail
            if event.rows is not table.rows or noise != (sampler.ERROR, sampler.TAIL):
                raise InvalidDocument(
                    "the ledger has an event whose rows or sampler are not those of its purpose"
                )
        if len(events) != len(expected):
            raise InvalidDocument("the ledger lacks events that its solver records, or has more")

    def _expected(self, events: Sequence[GaussianRelease]) -> list[TableShape]:
        """Tables of a training with as many steps as the events say."""
        steps, expected = 0, list[TableShape]()
        for phase in self.phases:
            if phase.is_repeated:
                steps = _steps(phase, events[len(expected) :])
                for step in range(1, steps + 1):
                    expected += [_filled(table, step, steps) for table in phase.tables]
            else:
                expected += [_filled(table, 0, steps) for table in phase.tables]
        return expected


def _filled(table: TableShape, step: int, steps: int) -> TableShape:
    purpose = table.purpose.replace("{steps}", str(steps)).replace("{step}", str(step))
    return TableShape(purpose, table.rows)


def _steps(phase: Phase, events: Sequence[GaussianRelease]) -> int:
    """Number of steps: as the first purpose states it, or as many as there are events left."""
    first = phase.tables[0].purpose
    if "{steps}" not in first:
        return max(1, len(events) // len(phase.tables))
    pattern = re.escape(first).replace(r"\{steps\}", "([1-9][0-9]*)").replace(r"\{step\}", "1")
    found = re.fullmatch(pattern, events[0].purpose) if events else None
    if found is None or int(found.group(1)) > STEPS_MAX:
        raise InvalidDocument("the ledger lacks events that its solver records")
    return int(found.group(1))
