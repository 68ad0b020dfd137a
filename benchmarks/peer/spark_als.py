"""Spark MLlib's alternating least squares, without a cluster.

Its factors are available only at the end, so it is retrained for 2, 5, 8, … passes. A first
training, in which Java compiles, is not counted. Memory is that of Python and Java together.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from protocol import SEED, Factors, Stopwatch, Task
from pyspark.ml.recommendation import ALS, ALSModel
from pyspark.sql import DataFrame, SparkSession

WARM_UP = 4


def read(spark: SparkSession, task: Task, folder: str) -> DataFrame:
    """Training ratings, cached in memory."""
    file = Path(folder) / "train.csv"
    columns = np.stack([task.train[name] for name in ("user", "item", "rating")], axis=1)
    np.savetxt(file, columns, fmt=("%d", "%d", "%g"), delimiter=",")
    ratings = spark.read.csv(str(file), schema="user int, item int, rating float")
    ratings = ratings.repartition(task.threads).cache()
    ratings.count()
    return ratings


def fit(task: Task, ratings: DataFrame, passes: int) -> ALSModel:
    """Train for a number of passes."""
    return ALS(
        rank=task.rank,
        maxIter=passes,
        regParam=task.regularization,
        numUserBlocks=task.threads,
        numItemBlocks=task.threads,
        seed=SEED,
    ).fit(ratings)


def profiles(factors: DataFrame, count: int, rank: int) -> npt.NDArray[np.float32]:
    """Factors in the order of our indices."""
    found = np.zeros((count, rank), dtype=np.float32)
    for row in factors.collect():
        found[row["id"]] = row["features"]
    return found


def model() -> Factors:
    """Factors of the last training."""
    users, items = task.train["shape"].tolist()
    return Factors(
        users=profiles(fitted.userFactors, users, task.rank),
        items=profiles(fitted.itemFactors, items, task.rank),
    )


task = Task.read()
spark = (
    SparkSession.builder.master(f"local[{task.threads}]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", task.threads)
    .getOrCreate()
)
java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
with TemporaryDirectory() as folder:
    # Without a checkpoint directory, the stack overflows after a dozen passes.
    spark.sparkContext.setCheckpointDir(folder)
    ratings = read(spark, task, folder)
    fit(task, ratings, WARM_UP)
    watch = Stopwatch(task, processes=("self", str(java)))
    for passes in range(2, task.passes + 1, 3):
        watch.start()
        fitted = fit(task, ratings, passes)
        watch.lap(passes, model)
    watch.report("pyspark")
    spark.stop()
