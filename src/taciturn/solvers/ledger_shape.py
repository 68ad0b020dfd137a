"""Shape of a solver's ledger: the tables it releases, their order and their purposes.

Pure Python, so that a verifier does not need the solver itself. Every purpose in a verified ledger
is one that its solver records, so no free text can be mistaken for part of the guarantee.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taciturn.accounting import sampler
from taciturn.accounting.events import GaussianRelease, Rows
from taciturn.errors import InvalidDocument


@dataclass(frozen=True)
class TableShape:
    """One table: its purpose, with the placeholders {step} and {steps}, and its rows."""

    purpose: str
    rows: Rows

    def filled(self, step: int, steps: int) -> "TableShape":
        """Table of a step, with its numbers filled in."""
        purpose = self.purpose.replace("{steps}", str(steps)).replace("{step}", str(step))
        return TableShape(purpose, self.rows)


@dataclass(frozen=True)
class Phase:
    """Tables released in this order, once or in every step.

    `proof` is that of their bounds, if it is not that of the ledger.
    """

    tables: tuple[TableShape, ...]
    is_repeated: bool = False
    proof: str | None = None

    @property
    def states_steps(self) -> bool:
        """Whether its purposes state the total number of steps; then no step may be missing."""
        return self.is_repeated and "{steps}" in self.tables[0].purpose

    def each(self, steps: int) -> Iterator[tuple[int, TableShape]]:
        """Its tables with their steps, in a training of `steps` steps."""
        for step in range(1, steps + 1) if self.is_repeated else [0]:
            for table in self.tables:
                yield step, table


@dataclass(frozen=True)
class LedgerShape:
    """Phases of a training, and the proof of their bounds.

    `interest` is the phase of a training that learns interest, after the first of the others.
    """

    proof: str
    phases: tuple[Phase, ...]
    interest: Phase | None = None

    def with_interest(self) -> "LedgerShape":
        """Shape of a training that learns interest."""
        if self.interest is None:
            return self
        first, *rest = self.phases
        return LedgerShape(self.proof, (first, self.interest, *rest))

    def check(self, events: Sequence[GaussianRelease]) -> int | None:
        """Number of steps of a training with these events; raises unless they are complete.

        None if the solver has no steps, or may stop before the last.
        """
        steps = self._steps(events)
        expected = [
            (table.filled(step, steps), phase.proof or self.proof)
            for phase in self.phases
            for step, table in phase.each(steps)
        ]
        if len(events) != len(expected):
            raise InvalidDocument(_OTHER)
        for event, (table, proof) in zip(events, expected, strict=True):
            if event.purpose != table.purpose or event.proof != proof:
                raise InvalidDocument(f"{_OTHER}: {table.purpose!r} is missing")
            if event.part is not None or event.sensitivity_by_level:
                raise InvalidDocument("the ledger has parts or levels that its solver does not use")
            noise = event.sampler_error, event.sampler_tail
            if event.rows is not table.rows or noise != (sampler.ERROR, sampler.TAIL):
                raise InvalidDocument(
                    "the ledger has an event whose rows or sampler do not match its purpose"
                )
        return steps if any(phase.states_steps for phase in self.phases) else None

    def _steps(self, events: Sequence[GaussianRelease]) -> int:
        """Number of steps that matches the number of events; 0 without a repeated phase."""
        once = sum(len(phase.tables) for phase in self.phases if not phase.is_repeated)
        each = sum(len(phase.tables) for phase in self.phases if phase.is_repeated)
        if each == 0:
            return 0
        steps, rest = divmod(len(events) - once, each)
        if steps < 1 or rest:
            raise InvalidDocument(_OTHER)
        return steps


_OTHER = "the ledger lacks events that its solver records, or has additional ones"
