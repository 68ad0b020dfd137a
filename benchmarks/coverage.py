"""Held-out ratings within nominal 50 % and 90 % intervals of `als --uncertainty`, δ = 1e-5.

MovieLens-100K and the anime sample, if they are in TACITURN_DATA; one split, test noise.
"""

import warnings

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.splits import random_split
from taciturn.errors import TaciturnError
from taciturn.evaluate.metrics import coverage
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.contract import Session

EPSILONS = (1, 5, 10)
SETS = ("ml-100k", "anime")
SHARES = (0.5, 0.9)
SPLIT = 21


def run() -> list[dict[str, object]]:
    """Fraction of held-out ratings within each interval, for each dataset and ε."""
    rows: list[dict[str, object]] = []
    for name in SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a repacked archive will do
                ratings = load(name)
        except TaciturnError as error:
            rows.append({"ratings": name, "left out": str(error)})
            continue
        train, test = random_split(ratings, 0.1, SPLIT)
        for epsilon in EPSILONS:
            session = Session(noise=InsecureTestNoise(SPLIT))
            budget = Budget.from_epsilon(epsilon, 1e-5)
            solver = AlsSolver(unit=Unit.VALUE, uncertainty=True)
            found = coverage(solver.fit(train, budget, session), test, SHARES)
            rows.append(
                {"ratings": name, "epsilon": epsilon}
                | {f"within_{share}": round(found[n], 3) for n, share in enumerate(SHARES)}
            )
    return rows
