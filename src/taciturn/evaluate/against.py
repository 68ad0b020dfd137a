"""Paired differences from an earlier comparison on the same splits. Exact, so owner-only.

An earlier comparison is the JSON document that `taciturn compare` writes. Runs are paired by
solver, unit, ε and seed: the seed determines the split, so most of the variance between splits
cancels in the differences.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from taciturn._internal import strict_json
from taciturn._internal.spelling import option
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.evaluate.plan import Cell, Plan, predicts_ratings


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """One solver under one unit at one ε: mean RMSE difference, this run minus the earlier one.

    `error` is the standard error of the mean; None for a single pair.
    """

    solver: str
    unit: Unit | None
    epsilon: float | None
    pairs: int
    difference: float
    error: float | None


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Paired differences from an earlier comparison, and notes about them. Exact: owner-only."""

    source: str
    differences: tuple[PairedDifference, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Pairing as JSON types."""
        return {
            "source": self.source,
            "differences": [
                {
                    "solver": each.solver,
                    "unit": each.unit,
                    "epsilon": each.epsilon,
                    "pairs": each.pairs,
                    "rmse_difference": each.difference,
                    "rmse_difference_error": each.error,
                }
                for each in self.differences
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EarlierRuns:
    """Errors of the runs of an earlier comparison. Exact: owner-only.

    Attributes
    ----------
    name
        Name of the document in messages.
    source, delta, holdout, same_users
        Name of its ratings, its δ, the fraction of ratings that it held out, and whether it left
        out users of public ratings.
    digest
        Digest of its ratings; None if it was written before digests were.
    errors
        RMSE of each run.
    """

    name: str
    source: str
    delta: float
    holdout: float
    digest: str | None
    errors: Mapping[Cell, float]
    same_users: bool = False

    @classmethod
    def read(cls, path: Path) -> "EarlierRuns":
        """Runs of the JSON document at a path."""
        return cls.from_dict(strict_json.read(path), str(path))

    @classmethod
    def from_dict(cls, document: Any, name: str) -> "EarlierRuns":
        """Runs of a document that `Comparison.to_dict` built."""
        try:
            runs = [
                (_cell(run), _number(run["rmse"]))
                for run in document["runs"]
                if predicts_ratings(_text(run["solver"]))
            ]
            found = cls(
                name=name,
                source=_text(document["source"]),
                delta=_number(document["delta"]),
                holdout=_number(document["holdout"]),
                digest=_text(document["ratings_digest"]) if "ratings_digest" in document else None,
                errors=dict(runs),
                same_users=bool(document.get("same_users")),
            )
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise InvalidDocument(
                f"{name} is not a document of taciturn compare; pass the compare.json that it "
                "wrote, or what it printed as JSON"
            ) from None
        if len(found.errors) < len(runs):
            raise InvalidDocument(f"{name} has two runs of one solver, unit, ε and seed")
        return found

    def check(self, plan: Plan, digest: str) -> None:
        """Refuse a plan, or ratings with another digest, whose runs cannot be paired with these."""
        for name, earlier, own in (
            ("holdout", self.holdout, plan.holdout),
            ("delta", self.delta, plan.delta),
        ):
            if earlier != own:
                raise InvalidParameter(
                    f"{self.name} was made with {option(name)} {earlier}, not {own}; pass the "
                    "value of the earlier run"
                )
        if self.same_users != plan.same_users:
            raise InvalidParameter(
                f"{self.name} was made {'with' if self.same_users else 'without'} "
                f"{option('same_users', True)}; do the same in this run"
            )
        if self.digest is not None and self.digest != digest:
            raise InvalidParameter(
                f"{self.name} is of other ratings; pass the ratings and reading options of the "
                "earlier run"
            )
        if not any(cell in self.errors for cell in plan.cells):
            raise InvalidParameter(
                f"no run of {self.name} has the solver, unit, ε and seed of one of these runs; "
                f"check {option('solvers')}, {option('units')}, {option('epsilons')} and "
                f"{option('first_seed')}"
            )

    def pair(self, errors: Mapping[Cell, float]) -> Pairing:
        """Differences of runs, given by their RMSE, from these."""
        gaps: dict[Cell, list[float]] = {}
        for cell, error in errors.items():
            if cell in self.errors:
                gaps.setdefault(replace(cell, seed=0), []).append(error - self.errors[cell])
        paired = sum(map(len, gaps.values()))
        return Pairing(
            source=self.source,
            differences=tuple(_difference(cell, found) for cell, found in gaps.items()),
            notes=tuple(self._notes(len(errors), paired)),
        )

    def _notes(self, count: int, paired: int) -> list[str]:
        """Notes about unchecked ratings, and about runs of either comparison without a partner."""
        earlier = len(self.errors)
        notes = []
        if self.digest is None:
            notes.append(
                f"{self.name} has no digest of its ratings, which it calls {self.source}; check "
                "that they are the same"
            )
        if paired < max(count, earlier):
            notes.append(
                f"left out for lack of a partner: {count - paired} of {count} runs of this "
                f"comparison, {earlier - paired} of {earlier} in {self.name}"
            )
        return notes


def _difference(cell: Cell, gaps: list[float]) -> PairedDifference:
    kind = asdict(cell)
    del kind["seed"]
    error = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None
    return PairedDifference(**kind, pairs=len(gaps), difference=fmean(gaps), error=error)


def _cell(run: Any) -> Cell:
    unit, epsilon, seed = run["unit"], run["epsilon"], run["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError
    return Cell(
        solver=_text(run["solver"]),
        unit=None if unit is None else Unit(unit),
        epsilon=None if epsilon is None else _number(epsilon),
        seed=seed,
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
