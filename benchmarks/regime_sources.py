"""Sources of ratings of the benchmark `regimes`: subsamples of public datasets, and a wide scale.

Every subsample is drawn with a fixed seed, so it is the same in every run.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from taciturn.data import load
from taciturn.data.named import locate
from taciturn.data.ratings import Ratings
from taciturn.data.synthetic import SyntheticSize, synthetic_ratings
from taciturn.errors import TaciturnError

_SEED = 24
_FACTORS = 8


@dataclass(frozen=True)
class Source:
    """Ratings of one regime: a named set, and what is kept of it.

    `few` is the maximum number of ratings of a user, drawn for each user from 1 to `few`; None
    keeps all ratings of the users that are kept. Without `dataset`, ratings are synthetic, on a
    scale from 1 to 100, and `spread` is about their standard deviation.
    """

    name: str
    dataset: str | None
    ratings: int | None
    few: int | None = None
    spread: float = 21.0

    @property
    def is_at_hand(self) -> bool:
        """Whether the dataset is in TACITURN_DATA or in the cache."""
        if self.dataset is None:
            return True
        try:
            locate(self.dataset, fetch=False)
        except TaciturnError:
            return False
        return True

    def load(self) -> Ratings:
        """Ratings of this regime, which lists no other users and items."""
        if self.dataset is None:
            return _wide(self.ratings or 0, self.spread)
        whole = load(self.dataset)
        if self.ratings is None:
            return whole
        table = _few_of_each_user(whole.to_frame(), self.few) if self.few else whole.to_frame()
        table = _some_users(table, self.ratings)
        return load(table, scale=whole.scale)


def _shuffled_users(table: pl.DataFrame) -> pl.DataFrame:
    """Each user once, in random order, with the number of ratings."""
    users = table.group_by("user_id", maintain_order=True).len().sort("user_id")
    order = np.random.default_rng(_SEED).permutation(len(users))
    return users[order]


def _few_of_each_user(table: pl.DataFrame, few: int) -> pl.DataFrame:
    """At most `few` random ratings of each user, a random number from 1 to `few`."""
    random = np.random.default_rng(_SEED)
    users = table.select("user_id").unique().sort("user_id")
    kept = users.with_columns(kept=pl.Series(random.integers(1, few + 1, len(users))))
    table = table.sort("user_id", "item_id").with_columns(key=pl.Series(random.random(len(table))))
    rank = pl.col("key").rank("ordinal").over("user_id")
    return table.join(kept, on="user_id").filter(rank <= pl.col("kept")).drop("key", "kept")


def _some_users(table: pl.DataFrame, ratings: int) -> pl.DataFrame:
    """Random users with `ratings` ratings together; the last user may lose some."""
    users = _shuffled_users(table).with_columns(before=pl.col("len").cum_sum() - pl.col("len"))
    kept = users.filter(pl.col("before") < ratings).with_row_index("place")
    table = table.join(kept.select("user_id", "place"), on="user_id")
    return table.sort("place", "item_id").head(ratings).drop("place")


def _wide(ratings: int, spread: float) -> Ratings:
    """Ratings from 1 to 100 with biases, factors and noise, about a mean of 62."""
    random = np.random.default_rng([_SEED, ratings])
    size = SyntheticSize(users=ratings // 10, items=ratings // 15, ratings=round(1.1 * ratings))
    pattern = _some_users(synthetic_ratings(size, seed=_SEED).to_frame(), ratings)
    users, items = (
        pattern[name].to_numpy().astype(np.int64) - 1 for name in ("user_id", "item_id")
    )
    score = random.normal(0, 0.41, size.users)[users] + random.normal(0, 0.41, size.items)[items]
    of_users = random.normal(0, 1, (size.users, _FACTORS))[users]
    of_items = random.normal(0, 0.36 / math.sqrt(_FACTORS), (size.items, _FACTORS))[items]
    score += (of_users * of_items).sum(axis=1) + random.normal(0, 0.73, len(users))
    values = pl.Series("rating", np.clip(np.rint(62 + spread * score), 1, 100))
    return load(pattern.with_columns(values), scale="1:100:1")


_ALL = (
    Source("ml-100k-5k", "ml-100k", 5_000),
    Source("ml-100k-35k", "ml-100k", 35_000),
    Source("ml-latest-small-5k", "ml-latest-small", 5_000, few=20),
    Source("ml-latest-small-35k", "ml-latest-small", 35_000, few=200),
    Source("netflix-5k", "netflix:paper", 5_000, few=10),
    Source("netflix-20k", "netflix:paper", 20_000, few=10),
    Source("netflix-430k", "netflix:paper", 430_000),
    Source("anime-5k", "anime", 5_000),
    Source("anime-35k", "anime", 35_000),
    Source("anime", "anime", None),
    Source("wide-5k", None, 5_000),
    Source("wide-10k", None, 10_000),
    Source("wide-narrow-5k", None, 5_000, spread=7.0),
)
SOURCES = {source.name: source for source in _ALL}
