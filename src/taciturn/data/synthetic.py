"""Synthetic ratings: long-tailed popularity, low rank plus noise, any size.

Generated from a public seed in independent blocks of users, so the result does not depend on the
number of threads. Used in demos, tests and benchmarks.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn.data.ratings import Csr, Ratings
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale

FACTORS = 8
BLOCK_USERS = 4096
SCALE = Scale(low=1, high=5, step=1)


@dataclass(frozen=True, kw_only=True)
class SyntheticSize:
    """Number of users and items, and approximate number of ratings."""

    users: int
    items: int
    ratings: int


PRESETS = {
    "10k": SyntheticSize(users=300, items=400, ratings=10_000),
    "100k": SyntheticSize(users=1_000, items=1_700, ratings=100_000),
    "1m": SyntheticSize(users=6_000, items=3_700, ratings=1_000_000),
    "3m": SyntheticSize(users=18_000, items=5_000, ratings=3_000_000),
    "10m": SyntheticSize(users=70_000, items=10_000, ratings=10_000_000),
    "20m": SyntheticSize(users=138_000, items=26_000, ratings=20_000_000),
    "30m": SyntheticSize(users=180_000, items=15_000, ratings=30_000_000),
    "100m": SyntheticSize(users=480_000, items=17_770, ratings=100_000_000),
}
"""Sizes by name. The largest is that of the Netflix Prize data."""


def synthetic_ratings(
    size: SyntheticSize | str, *, seed: int = 0, threads: int | None = None
) -> Ratings:
    """Synthetic ratings from 1 to 5, with users and items numbered from 1.

    A rating is 3.6 + item bias + user bias + ⟨item, user⟩ + noise, rounded. Item popularity has a
    long tail; the number of ratings per user is log-normal. `seed` is public.
    """
    if isinstance(size, str):
        if size not in PRESETS:
            raise InvalidParameter(
                f"synthetic size must be one of {', '.join(PRESETS)}, got {size!r}"
            )
        size = PRESETS[size]
    for name in ("users", "items", "ratings"):
        validate.positive_integer(name, getattr(size, name), "choose a preset such as 100k")
    if size.ratings > size.users * size.items / 2:
        raise InvalidParameter("ratings must be at most half of users × items")
    model = _Model(size, seed)
    blocks = range(-(-size.users // BLOCK_USERS))
    with ThreadPoolExecutor(parallel.thread_count(threads)) as pool:
        parts = list(pool.map(model.block, blocks))
    counts = np.concatenate([part[0] for part in parts])
    columns = np.concatenate([part[1] for part in parts])
    codes = np.concatenate([part[2] for part in parts])
    del parts
    return Ratings(
        user_ids=pl.Series(np.arange(1, size.users + 1)),
        item_ids=pl.Series(np.arange(1, size.items + 1)),
        scale=SCALE,
        by_user=Csr(np.concatenate([[0], np.cumsum(counts)]), columns, codes),
    )


class _Model:
    """Data shared by all blocks: item popularity, biases and profiles."""

    def __init__(self, size: SyntheticSize, seed: int) -> None:
        self.size, self.seed = size, seed
        random = np.random.default_rng([seed, 0])
        popularity = random.permutation(1 / (np.arange(size.items) + 0.02 * size.items + 1))
        self.cumulative = np.cumsum(popularity / popularity.sum())
        self.bias = random.normal(0, 0.45, size.items) + 0.1 * np.log(popularity * size.items)
        self.profiles = random.normal(0, 1, (size.items, FACTORS)) / np.sqrt(FACTORS)

    def block(
        self, number: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Number of ratings of each user in a block, and the items and codes of these ratings."""
        random = np.random.default_rng([self.seed, 1, number])
        begin = number * BLOCK_USERS
        users = min(BLOCK_USERS, self.size.users - begin)
        drawn = self._activity(random, users)
        rows = np.repeat(np.arange(users), drawn)
        items = np.searchsorted(self.cumulative, random.random(rows.size), side="right")
        items = np.minimum(items, self.size.items - 1)
        # A user rates an item at most once: repeated draws are merged.
        pairs = np.unique(rows * np.int64(self.size.items) + items)
        rows, items = pairs // self.size.items, pairs % self.size.items
        bias = random.normal(0, 0.45, users)
        profiles = random.normal(0, 0.7, (users, FACTORS))
        score = 3.6 + self.bias[items] + bias[rows] + random.normal(0, 0.8, rows.size)
        for factor in range(FACTORS):
            score += self.profiles[items, factor] * profiles[rows, factor]
        codes = np.clip(np.rint(score), 1, 5).astype(np.uint8) - np.uint8(1)
        return np.bincount(rows, minlength=users), items.astype(np.int32), codes

    def _activity(self, random: np.random.Generator, users: int) -> npt.NDArray[np.int64]:
        """Number of item draws of each user, such that about the right number are distinct."""
        mean = self.size.ratings / self.size.users
        wanted = np.minimum(mean * random.lognormal(-0.5, 1.0, users), self.size.items / 3)
        # Popular items are drawn repeatedly; the more draws, the more of them are merged.
        inflation = 1 + 3 * wanted / self.size.items
        return np.maximum(1, np.rint(wanted * inflation)).astype(np.int64)
