"""Taciturn's alternating least squares without privacy, pass by pass."""

import numpy as np
import polars as pl
from protocol import SEED, Factors, Stopwatch, Task

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings, compress_sorted
from taciturn.queries.executor import LocalExecutor
from taciturn.scale import Scale
from taciturn.solvers.contract import PublicFacts, Session
from taciturn.solvers.least_squares import LeastSquaresAlgorithm
from taciturn.solvers.loop import Training

task = Task.read()
users, items = task.train["shape"].tolist()
scale = Scale.parse(str(task.train["scale"]))
codes, _ = scale.encode(task.train["rating"].astype(np.float64))
ratings = Ratings(
    user_ids=pl.Series(range(users)),
    item_ids=pl.Series(range(items)),
    scale=scale,
    by_user=compress_sorted(task.train["user"], task.train["item"], codes, users),
)


def model() -> Factors:
    """Model after the passes so far."""
    state = training.state
    return Factors(
        users=state.users[:, 1:],
        items=state.items[:, 1:],
        mean=state.mean,
        user_biases=state.users[:, 0],
        item_biases=state.items[:, 0],
    )


watch = Stopwatch(task)
watch.start()
algorithm = LeastSquaresAlgorithm(
    PublicFacts.of(ratings, Unit.VALUE),
    None,
    factors=task.rank,
    iterations=task.passes,
    strength=task.regularization,
    threads=task.threads,
)
training = Training(
    algorithm,
    LocalExecutor(ratings, task.threads),
    Session(seed=SEED, threads=task.threads),
)
for done in training.steps():
    if done.step > 0:  # the first step reads the ratings
        watch.lap(done.step, model)
watch.report("taciturn")
