"""Held-out RMSE of every solver on MovieLens-1M, random 90/10, mean over splits, δ = 1e-5.

Uses repeatable test noise, so results are the same on every run. Without MovieLens-1M in
TACITURN_DATA, synthetic ratings of its size are used.
"""

from statistics import mean

from benchmarks.report import Bar, Row
from benchmarks.training import ratings_at_hand
from taciturn.accounting.budget import Budget
from taciturn.data.splits import random_split
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session

EPSILONS = (1, 5, 10, 20)
SPLITS = (41, 42, 43)
SOLVERS = {"als": EPSILONS, "gradient": EPSILONS, "bias": EPSILONS, "paper": (5, 10, 20)}
REFERENCES = ("non-private", "non-private-gradient", "non-private-bias")
MANY = 64
MANY_RMSE = 0.838


def run() -> list[Row]:
    """Mean error of each solver at each ε, and of `non-private` with many factors."""
    ratings, source = ratings_at_hand()
    splits = [random_split(ratings, 0.1, seed) for seed in SPLITS]
    cells: list[tuple[str, int | None, dict[str, int]]] = [
        (name, epsilon, {}) for name, epsilons in SOLVERS.items() for epsilon in epsilons
    ]
    cells += [(name, None, {}) for name in REFERENCES]
    cells.append(("non-private", None, {"factors": MANY}))
    rows: list[Row] = []
    for name, epsilon, settings in cells:
        solver = make_solver(name, unit="value", **settings)
        budget = Budget.from_epsilon(epsilon, 1e-5) if epsilon else None
        errors = [
            rmse(solver.fit(train, budget, Session(noise=InsecureTestNoise(seed))), test)
            for seed, (train, test) in zip(SPLITS, splits, strict=True)
        ]
        rows.append(
            {
                "ratings": source,
                "solver": name,
                "epsilon": epsilon or "none",
                "factors": settings.get("factors", "default"),
                "rmse_test": round(mean(errors), 4),
            }
        )
    return rows


def bars(rows: list[Row]) -> list[Bar]:
    """Maximum for many factors: that of the default, and on MovieLens-1M `MANY_RMSE`."""
    default, many = (
        next(
            row["rmse_test"]
            for row in rows
            if row["solver"] == "non-private" and row["factors"] == factors
        )
        for factors in ("default", MANY)
    )
    found = [Bar.at_most(f"non-private, {MANY} factors", many, float(str(default)))]
    if rows[0]["ratings"] == "ml-1m":
        found.append(Bar.at_most(f"non-private, {MANY} factors, RMSE", many, MANY_RMSE))
    return found
