"""Held-out RMSE of every solver on MovieLens-1M, random 90/10, mean over splits, δ = 1e-5.

Uses repeatable test noise, so results are the same on every run. Without MovieLens-1M in
TACITURN_DATA, synthetic ratings of its size are used.
"""

from statistics import mean

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


def run() -> list[dict[str, object]]:
    """Mean error of each solver at each ε."""
    ratings, source = ratings_at_hand()
    splits = [random_split(ratings, 0.1, seed) for seed in SPLITS]
    cells: list[tuple[str, int | None]] = [
        (name, epsilon) for name, epsilons in SOLVERS.items() for epsilon in epsilons
    ]
    cells += [(name, None) for name in REFERENCES]
    rows: list[dict[str, object]] = []
    for name, epsilon in cells:
        solver = make_solver(name, unit="value")
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
                "rmse_test": round(mean(errors), 4),
            }
        )
    return rows
