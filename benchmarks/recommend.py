"""Top ten for every user of MovieLens-1M at k = 20, against a loop over users in numpy.

Both produce the same table: user, item, score, rank. Best of several interleaved rounds. Without
MovieLens-1M in TACITURN_DATA, synthetic ratings of its size are used.
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import best_of
from benchmarks.training import ratings_at_hand
from taciturn.accounting.budget import Budget
from taciturn.recommend.serve import Recommender
from taciturn.release.bundle import Release
from taciturn.release.read import load_release
from taciturn.solvers.gradient import GradientSolver
from taciturn.training.train import train

COUNT = 10
ROUNDS = 7


def run() -> list[dict[str, object]]:
    """Seconds for all users, and the speed-up of taciturn."""
    ratings, source = ratings_at_hand()
    with tempfile.TemporaryDirectory() as folder:
        train(
            ratings,
            GradientSolver(factors=20),
            Budget.from_epsilon(10, 1e-5),
            output=Path(folder) / "release",
        )
        release = load_release(Path(folder) / "release")
    recommender = Recommender(release)
    users = release.model.user_profiles.ids
    best = best_of(
        {"taciturn": lambda: recommender.recommend(users, COUNT), "numpy": lambda: _loop(release)},
        ROUNDS,
    )
    return [
        {
            "ratings": source,
            "users": len(users),
            "taciturn_s": round(best["taciturn"], 4),
            "numpy_s": round(best["numpy"], 4),
            "times_numpy": round(best["numpy"] / best["taciturn"], 1),
        }
    ]


def _loop(release: Release) -> pl.DataFrame:
    users, items = release.model.user_profiles, release.model.item_profiles
    ids, rows = items.ids.to_numpy(), []
    for user, bias, factors in zip(users.ids, users.biases, users.factors, strict=True):
        scores = items.factors @ factors + items.biases + bias + release.model.mean
        top = np.argpartition(-scores, COUNT)[:COUNT]
        top = top[np.argsort(-scores[top], kind="stable")]
        rows += [
            (user, item, score, rank)
            for rank, (item, score) in enumerate(
                zip(ids[top].tolist(), scores[top].tolist(), strict=True), start=1
            )
        ]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "score", "rank"], orient="row")
