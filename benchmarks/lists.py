"""Lists by interest, by popularity and by predicted rating: NDCG@10, δ = 1e-5, splits 41 to 45.

Held-out ratings in the top quarter of the scale are relevant; all items without a training rating
by the user are ranked. Numbers are multiples of the list by exact numbers of ratings on the same
split, with the standard error of the mean over splits. Columns: `popularity`, the solver of that
name with the same unit and ε; `popular`, interest of `als` without its personal part; `interest`,
the whole of it; `lists`, interest and predicted rating together, which is what `recommend` shows;
`rating`, predicted ratings alone, of a training without interest; `against`, lists relative to the
popularity solver; `rmse`, the difference that learning interest makes. Exact, so owner-only.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.intervals import SETS, loaded
from benchmarks.report import Bar
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import TaciturnError
from taciturn.evaluate.matching import Matched, match
from taciturn.evaluate.metrics import rmse
from taciturn.evaluate.ranking import rank
from taciturn.solvers.als.solver import AlsSolver, Serve
from taciturn.solvers.contract import Session
from taciturn.solvers.non_private import NonPrivateSolver
from taciturn.solvers.popularity import NonPrivatePopularitySolver, PopularitySolver

EPSILONS = (1, 2, 5, 10)
SPLITS = (41, 42, 43, 44, 45)

SERVED = (
    (Unit.VALUE, Serve.PROFILES),
    (Unit.RATING, Serve.FOLD_IN),
    (Unit.RATING, Serve.PROFILES),
    (Unit.USER, Serve.FOLD_IN),
)

FLOORS = {
    (Unit.VALUE, Serve.PROFILES): (2.2, 2.2, 2.25, 2.3),
    (Unit.RATING, Serve.FOLD_IN): (1.02, 1.2, 1.5, 1.85),
    (Unit.RATING, Serve.PROFILES): (1.0, 1.1, 1.3, 1.5),
    (Unit.USER, Serve.FOLD_IN): (1.0, 1.05, 1.2, 1.4),
}
"""Least multiples on MovieLens-1M, by ε."""

NON_PRIVATE = 2.35
"""Least multiple without noise, on MovieLens-1M."""

AGAINST_POPULARITY = 0.98
"""Least ratio to the popularity solver with the same unit and ε, on every dataset."""

TRAININGS = {Unit.VALUE: 1, Unit.RATING: 3, Unit.USER: 3}
"""Trainings on each split, of which means are taken: lists of few users vary with the noise."""

Split = tuple[Ratings, Ratings]


def _ndcg(matched: Matched, split: Split) -> float:
    return float(rank(matched, *split, None).ndcg.mean())


def _with(matched: Matched, *, personal: bool) -> Matched:
    """Model that ranks by interest alone, with or without its personal part."""
    model = matched.model
    assert model.interest is not None
    parts: dict[str, Any] = {}
    for name in ("users", "items"):
        profiles = getattr(model, name)
        interests = profiles.interests.copy()
        if not personal:
            interests[:, 1:] = 0
            if name == "users":
                interests[:, 0] = 1
        parts[name] = replace(profiles, interests=interests)
    # Nothing of predicted ratings but a trace, which decides between equal interests.
    interest = replace(model.interest, rating_weight=1e-9)
    return replace(matched, model=replace(model, interest=interest, **parts))


def _measured(
    split: Split, seed: int, unit: Unit, serve: Serve, epsilon: float
) -> dict[str, float]:
    """Means over the trainings on one split."""
    found = [_measure(split, seed, unit, serve, epsilon) for _ in range(TRAININGS[unit])]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def _measure(split: Split, seed: int, unit: Unit, serve: Serve, epsilon: float) -> dict[str, float]:
    """NDCG@10 of each list of one training, and the difference in RMSE."""
    train, test = split
    budget = Budget.from_epsilon(epsilon, 1e-5)
    fit, alone = (
        AlsSolver(unit=unit, serve=serve, interest=interest).fit(train, budget, Session(seed=seed))
        for interest in (None, False)
    )
    baseline = PopularitySolver(unit=unit).fit(train, budget, Session(seed=seed))
    matched = match(fit, test)
    return {
        "popularity": _ndcg(match(baseline, test), split),
        "popular": _ndcg(_with(matched, personal=False), split),
        "interest": _ndcg(_with(matched, personal=True), split),
        "lists": _ndcg(matched, split),
        "rating": _ndcg(match(alone, test), split),
        "rmse": rmse(fit, test) - rmse(alone, test),
    }


def _summary(found: list[dict[str, float]], exact: list[float]) -> dict[str, object]:
    """Means over splits, as multiples of the exact popularity of each split."""
    row: dict[str, object] = {}
    multiples = {
        name: np.array([each[name] / base for each, base in zip(found, exact, strict=True)])
        for name in found[0]
        if name != "rmse"
    }
    for name, values in multiples.items():
        row[name] = round(float(values.mean()), 3)
    root = np.sqrt(len(exact))
    row["lists_error"] = round(float(multiples["lists"].std(ddof=1) / root), 3)
    ratio = multiples["lists"] / multiples["popularity"]
    row["against"] = round(float(ratio.mean()), 3)
    row["against_error"] = round(float(ratio.std(ddof=1) / root), 3)
    errors = np.array([each["rmse"] for each in found])
    row["rmse"] = round(float(errors.mean()), 4)
    row["rmse_error"] = round(float(errors.std(ddof=1) / root), 4)
    return row


def _rows(only: tuple[str, ...] | None) -> Iterator[dict[str, object]]:
    for name in only or SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a repacked archive will do
                ratings = loaded(name)
        except TaciturnError as error:
            yield {"ratings": name, "left out": str(error)}
            continue
        splits = {seed: random_split(ratings, 0.1, seed) for seed in SPLITS}
        exact = [
            _ndcg(match(NonPrivatePopularitySolver().fit(train), test), (train, test))
            for train, test in splits.values()
        ]
        yield {"ratings": name, "unit": "–", "exact popularity": round(float(np.mean(exact)), 4)}
        bound = [
            _ndcg(match(NonPrivateSolver().fit(train), test), (train, test)) / base
            for (train, test), base in zip(splits.values(), exact, strict=True)
        ]
        yield {"ratings": name, "unit": "–", "non-private": round(float(np.mean(bound)), 3)}
        for unit, serve in SERVED:
            for epsilon in EPSILONS:
                found = [
                    _measured(split, seed, unit, serve, epsilon) for seed, split in splits.items()
                ]
                row = {"ratings": name, "unit": unit, "serve": serve, "epsilon": epsilon}
                yield row | _summary(found, exact)


def run(only: tuple[str, ...] | None = None) -> list[dict[str, object]]:
    """One row for each dataset, unit, way of serving and ε; `only` names the datasets."""
    return list(_rows(only))


def bars(rows: list[dict[str, object]]) -> list[Bar]:
    """Least multiples of exact popularity on MovieLens-1M, and of private popularity everywhere."""
    found = []
    for row in rows:
        name, unit = row["ratings"], row["unit"]
        if "non-private" in row and name == "ml-1m":
            found.append(Bar.at_least("non-private, ml-1m", row["non-private"], NON_PRIVATE))
        if "lists" not in row:
            continue
        serve, epsilon = Serve(str(row["serve"])), int(str(row["epsilon"]))
        what = f"{name}, {unit}, {serve}, epsilon {epsilon}"
        if name == "ml-1m":
            least = FLOORS[Unit(str(unit)), serve][EPSILONS.index(epsilon)]
            found.append(Bar.at_least(what, row["lists"], least))
        ratio = float(str(row["against"])) + 2 * float(str(row["against_error"]))
        found.append(Bar.at_least(f"{what}: against popularity", ratio, AGAINST_POPULARITY))
    return found
