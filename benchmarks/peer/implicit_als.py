"""Alternating least squares of implicit, pass by pass: exact, or with `cg` its default solver.

It learns preferences, not ratings: a rating is a confidence, and an unrated pair is a weak
negative. A pass over the same pairs is the same amount of work, but there is no RMSE of ratings to
compare.
"""

import sys

from implicit.cpu.als import AlternatingLeastSquares
from protocol import SEED, Stopwatch, Task
from scipy.sparse import csr_matrix

solver = sys.argv.pop()
task = Task.read()
pairs = task.train["user"], task.train["item"]
table = csr_matrix((task.train["rating"], pairs), shape=task.train["shape"])

watch = Stopwatch(task)
watch.start()
AlternatingLeastSquares(
    factors=task.rank,
    regularization=task.regularization,
    use_native=True,
    use_cg=solver == "cg",
    iterations=task.passes,
    num_threads=task.threads,
    random_state=SEED,
).fit(table, show_progress=False, callback=lambda number, *_: watch.lap(number + 1))
watch.report("implicit")
