"""Surprise's SVD, which is stochastic gradient descent in one thread.

Its factors are available only at the end, so it is retrained for 4, 8, 12, … passes.
"""

import numpy as np
from protocol import SEED, Factors, Stopwatch, Task
from surprise import SVD, Dataset, Reader

LEARNING_RATE = 0.01  # twice its default: more accurate after the same number of passes

task = Task.read()
low, high = (float(end) for end in str(task.train["scale"]).split(":")[:2])
columns = (task.train[name].tolist() for name in ("user", "item", "rating"))
triples = [(*triple, None) for triple in zip(*columns, strict=True)]
data = Dataset(Reader(rating_scale=(low, high))).construct_trainset(triples)
users, items = (np.zeros(count, dtype=np.int64) for count in task.train["shape"])
for user in data.all_users():
    users[data.to_raw_uid(user)] = user
for item in data.all_items():
    items[data.to_raw_iid(item)] = item


def model() -> Factors:
    """Factors of the last training, in the order of our indices."""
    return Factors(
        users=fitted.pu[users],
        items=fitted.qi[items],
        mean=data.global_mean,
        user_biases=fitted.bu[users],
        item_biases=fitted.bi[items],
    )


watch = Stopwatch(task)
for passes in range(4, task.passes + 1, 4):
    watch.start()
    fitted = SVD(
        n_factors=task.rank,
        n_epochs=passes,
        lr_all=LEARNING_RATE,
        reg_all=task.regularization,
        random_state=SEED,
    ).fit(data)
    watch.lap(passes, model)
watch.report("scikit-surprise")
