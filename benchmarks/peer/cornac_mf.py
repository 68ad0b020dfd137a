"""Cornac's matrix factorization by stochastic gradient descent, pass by pass.

With a seed, Cornac uses only one thread, so it gets initial profiles instead.
"""

import numpy as np
from cornac.data import Dataset
from cornac.models import MF
from protocol import SEED, Factors, Stopwatch, Task

LEARNING_RATE = 0.01  # its default

task = Task.read()
users, items = task.train["shape"].tolist()
random = np.random.default_rng(SEED)
start = {
    name: random.normal(scale=0.01, size=(count, task.rank)).astype(np.float32)
    for name, count in (("U", users), ("V", items))
}
data = Dataset(
    num_users=users,
    num_items=items,
    uid_map={user: user for user in range(users)},
    iid_map={item: item for item in range(items)},
    uir_tuple=(
        task.train["user"].astype(np.int64),
        task.train["item"].astype(np.int64),
        task.train["rating"].astype(np.float64),
    ),
)


def model() -> Factors:
    """Factors after the passes so far."""
    return Factors(
        users=fitted.u_factors,
        items=fitted.i_factors,
        mean=fitted.global_mean,
        user_biases=fitted.u_biases,
        item_biases=fitted.i_biases,
    )


watch = Stopwatch(task)
watch.start()
fitted = MF(
    k=task.rank,
    max_iter=1,
    learning_rate=LEARNING_RATE,
    lambda_reg=task.regularization,
    num_threads=task.threads,
    init_params=start,
)
for number in range(task.passes):
    fitted.fit(data)
    watch.lap(number + 1, model)
watch.report("cornac")
