"""Sums in which every person counts for the same: measurements under unit `user`.

Neighbours differ by all ratings of one person. A person with n ratings gives each of them the
weight 1/√n, so that all of them together move a table of items by no more than one rating would.
What the ratings are multiplied with is the person's own profile, solved from their own ratings and
from released items: it changes nobody else's terms (docs/proofs/user.md).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn._internal.ridge import solve_rows
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import BoundedQuery, checked_pattern
from taciturn.queries.prediction_errors import (
    COUNT_BITS,
    NORM,
    ResidualPass,
    Side,
    check_values,
    scaled_powers,
    square_bits,
    total_query,
)

PEOPLE_MAX = 2**24
"""Most people whose sums are certain to be exact."""

_LARGEST = 1e29
"""Bound on the length of a user's row, below what `Side` refuses; real ones are far shorter."""

Values = npt.NDArray[np.int32]
Tables = tuple[npt.NDArray[np.int64], ...]


class People:
    """Who rated what, a row for each person: private under unit `user`; checked once."""

    def __init__(self, ratings: Ratings) -> None:
        self.items = ratings.shape[1]
        side = ratings.by_user
        if side.starts.size > PEOPLE_MAX:
            raise InvalidParameter("unit user is made for at most 2^24 people")
        self.starts, self.columns = side.starts, side.columns
        if self.starts.size > 1:
            self.starts, self.columns = checked_pattern(side.starts, side.columns, self.items)
        self.counts = np.diff(self.starts)
        self.weights = weights(self.counts)


def weights(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the weight of each rating of a person, w ≤ 2^bits/√n in whole steps; 0 without any."""
    one = 1 << COUNT_BITS
    found = np.floor(one / np.sqrt(np.maximum(counts, 1))).astype(np.int64)
    # Whatever floating point did: n·w² must not exceed the square of one.
    found -= found * found > one * one // np.maximum(counts, 1)
    return np.where(counts > 0, found, 0)


class PersonTotals:
    """How much weight each item has; how many people there are, and how they rate: two tables.

    The second sums over people 1 and their mean v and v², values being divided by the largest of
    their grid.
    """

    def __init__(self, people: People, values: ValueGrid) -> None:
        self._people, self._grid = people, values
        self.queries = (
            BoundedQuery(
                purpose="weights of items",
                unit=Unit.USER,
                rows=Rows.ITEMS,
                shape=(people.items, 1),
                exponent=-COUNT_BITS,
                sensitivity=float(1 << COUNT_BITS),
                coordinates=people.items,
                magnitude=PEOPLE_MAX << COUNT_BITS,
                proof="user.md#claim",
            ),
            total_query("number of people, sums of their means", Unit.USER, PEOPLE_MAX, 3),
        )

    def exact(self, values: Values, threads: int | None = None) -> Tables:
        """Return both tables. Reads private data; the result is private too."""
        people = self._people
        check_values(values, people.columns)
        by_rating = np.repeat(people.weights, people.counts)
        # Sums of whole numbers below 2^53 are exact.
        weights = np.bincount(people.columns, weights=by_rating, minlength=people.items)
        powers = scaled_powers(values, self._grid)
        totals = [
            int((people.counts > 0).sum()) << COUNT_BITS,
            *(int(_by_person(power, people).sum()) for power in powers),
        ]
        return weights.astype(np.int64)[:, None], np.array([totals], dtype=np.int64)


def _by_person(values: npt.NDArray[np.int64], people: People) -> npt.NDArray[np.int64]:
    """Return the mean over each person's ratings, towards zero; 0 without any."""
    ends = np.concatenate([[0], np.cumsum(values)])
    sums = ends[people.starts[1:]] - ends[people.starts[:-1]]
    means: npt.NDArray[np.int64] = np.sign(sums) * (np.abs(sums) // np.maximum(people.counts, 1))
    return means


@dataclass(frozen=True, eq=False, kw_only=True)
class Items:
    """Released items, from which every person's own profile follows.

    Attributes
    ----------
    rows
        One row for each item, the bias first, then the factors, in units of ratings' own.
    ridge
        What is added to the normal equations of a person, one number for each coefficient.
    constant
        The constant feature, which stands in the place of the bias. Features are divided by their
        length.
    """

    rows: npt.NDArray[np.float64]
    ridge: npt.NDArray[np.float64]
    constant: float

    def __post_init__(self) -> None:
        # An error while people are solved would tell of their ratings.
        is_sound = self.rows.ndim == 2 and self.ridge.shape == self.rows.shape[1:]
        is_sound = is_sound and bool((self.ridge > 0).all() and np.isfinite(self.ridge).all())
        if not (is_sound and np.isfinite(self.rows).all() and 0 < self.constant < math.inf):
            raise InvalidParameter("items and their ridge must be finite; the ridge positive")

    @property
    def width(self) -> int:
        """How many coefficients a person has."""
        return int(self.rows.shape[1])

    def solve(
        self,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        targets: npt.NDArray[np.float32],
        threads: int | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return the rows of people, a bias and factors, from ratings minus the mean.

        Reads private data; a row depends on the ratings of one person.
        """
        nothing = np.zeros(self.width)
        return solve_rows(
            starts,
            columns,
            targets,
            self.rows,
            weighted=nothing,
            fixed=self.ridge,
            threads=threads,
        )


class PersonSums:
    """Sums of weighted, cut residuals times people's features by item, and two small tables.

    Beside Σ w·r·f by item, the sum over people of f fᵀ (its upper triangle), and that of the mean
    of their squared residuals.

    Parameters
    ----------
    purpose
        What it is for, in words.
    people
        Who rated what.
    items
        The released items that everything is predicted from.
    mean
        Released; subtracted from ratings.
    values
        Grid of the ratings.
    limit
        Residuals are cut to this, in steps of the grid.
    width
        Columns to record, at least those there are: what was planned for before the first release.
    portable
        Use no special instructions in the pass; its result is the same.
    """

    def __init__(
        self,
        *,
        purpose: str,
        people: People,
        items: Items,
        mean: float,
        values: ValueGrid,
        limit: int,
        width: int = 1,
        portable: bool = False,
    ) -> None:
        validate.positive_integer("limit", limit, "it counts steps of the grid")
        if len(items.rows) != people.items or not math.isfinite(mean):
            raise InvalidParameter("items must be those of the ratings, and the mean a number")
        self._people, self._items, self._mean, self._grid = people, items, mean, values
        self._pass = ResidualPass(values, limit=limit, first=1, portable=portable)
        # Items only predict here; the constant feature does not.
        lengths = np.linalg.norm(items.rows, axis=1)
        self._offered = Side(items.rows, 1 / np.maximum(lengths, 1e-6), items.rows[:, 0])
        limit, planned = self._pass.limit, max(width, items.width)
        self._bits = bits = square_bits(limit)
        self.queries = (
            BoundedQuery(
                purpose=f"{purpose}, sums by item",
                unit=Unit.USER,
                rows=Rows.ITEMS,
                shape=(people.items, items.width),
                exponent=values.exponent - (NORM.bit_length() - 1),
                sensitivity=float(limit * NORM),
                coordinates=people.items * planned,
                magnitude=PEOPLE_MAX * limit * NORM,
                proof="user.md#claim",
            ),
            BoundedQuery(
                purpose=f"{purpose}, products of features",
                unit=Unit.USER,
                rows=Rows.TOTAL,
                shape=(1, _triangle(items.width)),
                exponent=-2 * (NORM.bit_length() - 1),
                sensitivity=float(NORM**2),
                coordinates=_triangle(planned),
                magnitude=PEOPLE_MAX * NORM**2,
                proof="user.md#claim",
            ),
            BoundedQuery(
                purpose=f"{purpose}, mean squares",
                unit=Unit.USER,
                rows=Rows.TOTAL,
                shape=(1, 1),
                exponent=2 * values.exponent - bits,
                sensitivity=float(limit**2 << bits),
                coordinates=1,
                magnitude=PEOPLE_MAX * limit**2 << bits,
                proof="user.md#claim",
            ),
        )

    def exact(self, values: Values, threads: int | None = None) -> Tables:
        """Return the tables of the queries. Reads private data; the result is private too."""
        people, items, step = self._people, self._items, math.ldexp(1.0, self._grid.exponent)
        check_values(values, people.columns)
        inside = np.clip(values, self._grid.lowest, self._grid.highest)
        targets = (inside * step - self._mean).astype(np.float32)
        rows = items.solve(people.starts, people.columns, targets, threads)
        # Whatever was solved, nothing below can fail: an error would depend on one user's ratings.
        with np.errstate(all="ignore"):
            rows[~(np.linalg.norm(rows, axis=1) < _LARGEST)] = 0
        features = rows.copy()
        features[:, 0] = items.constant
        base = np.clip(self._mean + rows[:, 0], -_LARGEST, _LARGEST)
        whole = Side(features, 1 / np.linalg.norm(features, axis=1), base)
        rated = people.counts > 0
        packed = whole.packed[rated, : items.width].astype(np.float64)
        triangle = (packed.T @ packed)[np.triu_indices(items.width)]  # exact: below 2^53
        weighted = whole.weighted(people.weights, COUNT_BITS)
        _, sums, squares = self._pass.run(
            people.starts, people.columns, inside, weighted, self._offered, threads
        )
        means = (squares << self._bits) // np.maximum(people.counts, 1)
        return sums, triangle.astype(np.int64)[None, :], means.sum().reshape(1, 1)


def _triangle(width: int) -> int:
    """Entries of a symmetric matrix on and above its diagonal."""
    return width * (width + 1) // 2
