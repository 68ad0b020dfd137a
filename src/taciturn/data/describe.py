"""Exact statistics of ratings. Owner-only: they are not private and must not be published."""

from typing import Any

import numpy as np

from taciturn._internal.ids import parse_id
from taciturn.data.ratings import Ratings
from taciturn.tables.ids import index_of


def describe(
    ratings: Ratings, *, user: str | None = None, item: str | None = None
) -> dict[str, Any]:
    """Counts, mean and distribution of the ratings. Reads private data and adds no noise.

    `user` and `item` are ids as text. If given, their numbers of ratings are included.
    """
    per_user, per_item = (np.diff(table.starts) for table in (ratings.by_user, ratings.by_item))
    values = ratings.values()
    users, items = ratings.shape
    facts: dict[str, Any] = {
        "ratings": len(ratings),
        "users": users,
        "items": items,
        "scale": str(ratings.scale),
        "density": len(ratings) / (users * items),
        "mean": float(values.mean(dtype=np.float64)),
        "standard_deviation": float(values.std(dtype=np.float64)),
        "ratings_per_user": _quantiles(per_user),
        "ratings_per_item": _quantiles(per_item),
        "megabytes": round(ratings.nbytes / 1e6, 1),
    }
    if ratings.scale.step is not None:
        codes, counts = np.unique(ratings.by_user.codes, return_counts=True)
        levels = ratings.scale.decode(codes)
        facts["distribution"] = {
            f"{level:g}": int(count) for level, count in zip(levels, counts, strict=True)
        }
    if user is not None:
        place = index_of("user", parse_id(user, ratings.user_ids), ratings.user_ids)
        facts["ratings_of_user"] = int(per_user[place])
    if item is not None:
        place = index_of("item", parse_id(item, ratings.item_ids), ratings.item_ids)
        facts["ratings_of_item"] = int(per_item[place])
    return facts


def _quantiles(counts: np.ndarray) -> dict[str, int]:
    names = {"least": 0.0, "median": 0.5, "most": 1.0}
    return {name: int(np.quantile(counts, place)) for name, place in names.items()}
