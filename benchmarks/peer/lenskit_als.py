"""LensKit's biased matrix factorization by alternating least squares, pass by pass.

Its biases are means, computed before the first pass; their time counts towards it.
"""

import pandas as pd
from lenskit.als import BiasedMFScorer
from lenskit.data import from_interactions_df
from lenskit.parallel import initialize
from lenskit.training import TrainingOptions
from protocol import SEED, Factors, Stopwatch, Task

task = Task.read()
initialize(processes=1, threads=task.threads, backend_threads=1)
users, items = task.train["shape"].tolist()
frame = pd.DataFrame(
    {
        "user_id": task.train["user"],
        "item_id": task.train["item"],
        "rating": task.train["rating"],
    }
)
data = from_interactions_df(frame, users=range(users), items=range(items))


def model() -> Factors:
    """Factors after the passes so far."""
    return Factors(
        users=scorer.user_embeddings,
        items=scorer.item_embeddings,
        mean=scorer.bias.global_bias,
        user_biases=scorer.bias.user_biases,
        item_biases=scorer.bias.item_biases,
    )


watch = Stopwatch(task)
watch.start()
scorer = BiasedMFScorer(
    embedding_size=task.rank, epochs=task.passes, regularization=task.regularization
)
trainer = scorer.create_trainer(data, TrainingOptions(rng=SEED))
for number in range(task.passes):
    trainer.train_epoch()
    watch.lap(number + 1, model)
watch.report("lenskit")
