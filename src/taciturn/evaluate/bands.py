"""Bands of users by activity and of items by popularity. Exact, so owner-only.

Noise affects users and items with few ratings most, so metrics are also given by band.
"""

import numpy as np
import numpy.typing as npt

from taciturn._internal.ids import match_rows
from taciturn.data.ratings import Ratings

BANDS = 5
"""Number of bands of users or items, with about equally many training ratings each."""

BandMetric = tuple[float | None, ...]
"""Metric of each band, from the fewest training ratings to the most; None without data."""

BandRow = npt.NDArray[np.int64]
"""Band of each user, item or rating; 0 has the fewest training ratings."""


def user_bands(train: Ratings, test: Ratings) -> BandRow:
    """Band of each user of the test ratings by training ratings; 0 for users without any."""
    bands = split_by_count(np.diff(train.by_user.starts))
    return _looked_up(bands, match_rows(test.user_ids, train.user_ids))


def item_bands(train: Ratings, test: Ratings) -> BandRow:
    """Band of each item of the test ratings by training ratings; 0 for items without any."""
    bands = split_by_count(np.diff(train.by_item.starts))
    return _looked_up(bands, match_rows(test.item_ids, train.item_ids))


def split_by_count(counts: npt.NDArray[np.int64]) -> BandRow:
    """Band of each row, given numbers of ratings: rows in ascending order, in equal shares.

    A row is in the band that its first rating falls into.
    """
    order = np.argsort(counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    bands = np.zeros(counts.size, dtype=np.int64)
    bands[order] = np.minimum(BANDS - 1, before * BANDS // max(1, int(counts.sum())))
    return bands


def mean_in_bands(values: npt.NDArray[np.float64], bands: BandRow) -> BandMetric:
    """Mean of the values in each band."""
    sums = np.bincount(bands, weights=values, minlength=BANDS).astype(np.float64)
    return _ratios(sums, np.bincount(bands, minlength=BANDS))


def rmse_in_bands(errors: npt.NDArray[np.float64], bands: BandRow) -> BandMetric:
    """Root-mean-square of the errors in each band."""
    return tuple(
        None if mean is None else float(np.sqrt(mean)) for mean in mean_in_bands(errors**2, bands)
    )


def share_in_bands(selected: BandRow, bands: BandRow) -> BandMetric:
    """Share of the members of each band that are selected, given the bands of both."""
    hits = np.bincount(selected, minlength=BANDS).astype(np.float64)
    return _ratios(hits, np.bincount(bands, minlength=BANDS))


def _looked_up(bands: BandRow, rows: npt.NDArray[np.int64]) -> BandRow:
    # An unknown id has row −1: the last entry, which is 0.
    return np.append(bands, 0)[rows]


def _ratios(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> BandMetric:
    pairs = zip(sums.tolist(), counts.tolist(), strict=True)
    return tuple(total / count if count else None for total, count in pairs)
