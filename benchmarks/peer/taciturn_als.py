"""Taciturn's alternating least squares without privacy, pass by pass."""

import numpy as np
import polars as pl
from protocol import SEED, Factors, Stopwatch, Task

from taciturn.data.ratings import Ratings, filed
from taciturn.scale import Scale
from taciturn.solvers.contract import Seeds
from taciturn.solvers.least_squares import BIAS_RIDGE, PRIOR_RATINGS, LeastSquares, Ridge

task = Task.read()
users, items = task.train["shape"].tolist()
scale = Scale.parse(str(task.train["scale"]))
codes, _ = scale.encode(task.train["rating"].astype(np.float64))
ratings = Ratings(
    user_ids=pl.Series(range(users)),
    item_ids=pl.Series(range(items)),
    scale=scale,
    by_user=filed(task.train["user"], task.train["item"], codes, users),
)


def model() -> Factors:
    """Return what the passes so far have found."""
    return Factors(
        users=state["users"][:, 1:],
        items=state["items"][:, 1:],
        mean=mean,
        user_biases=state["users"][:, 0],
        item_biases=state["items"][:, 0],
    )


watch = Stopwatch(task)
watch.start()
values = ratings.values()
mean = float(np.mean(values, dtype=np.float64))
weighted = task.regularization * scale.range / 4
ridge = Ridge(weighted=weighted, fixed=PRIOR_RATINGS * weighted, bias=BIAS_RIDGE)
squares = LeastSquares(
    ratings, values - np.float32(mean), task.rank, ridge, Seeds(seed=SEED), task.threads
)
state = squares.begin()
for number in range(task.passes):
    state = squares.step(number, state)
    watch.lap(number + 1, model)
watch.report("taciturn")
