"""Columns of a table of items as numbers: categories, lists of categories, numbers and vectors.

Every column ends with mean 0 over the items of the table, and missing values are 0, the mean.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import memory
from taciturn.errors import InvalidDocument
from taciturn.tables.fields import plain_name
from taciturn.tables.names import RATING

SEPARATOR = "|"
"""Separator of a list of categories in a text field, as in MovieLens."""

CATEGORIES_MAX = 64
"""Maximum number of categories of one column; the most common are kept."""

HOLDERS_MIN = 2
"""Minimum number of items that have a category: one item alone has a profile of its own."""

COLUMNS_MAX = 32
"""Maximum number of columns; more are reduced to principal components."""

RAW_MAX = 4096
"""Maximum number of columns before reduction: it takes time cubic in them."""

_STATISTICS = frozenset({"rating", "ratings", "score", "scores", "star", "stars"})
"""Words in the name of a column of numbers that is probably computed from ratings."""

_FLAT = 1e-12
"""Variance, relative to the mean square, below which a column is constant."""

Column = tuple[str, npt.NDArray[np.float64]]
"""Name and values of a column of numbers; NaN is missing."""


def encoded(table: pl.DataFrame, source: str) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Names and values of the features in a table without ids.

    Categories become columns of 0 and 1. All columns are standardised over the rows that have them.
    More than `COLUMNS_MAX` columns are reduced by `_leading`. Rows must be in a fixed order.
    """
    names: list[str] = []
    columns: list[npt.NDArray[np.float64]] = []
    for name, values in _numbers(table, source):
        scaled = _standardised(values)
        if scaled is not None:
            names.append(name)
            columns.append(scaled)
        if len(columns) > RAW_MAX:
            raise InvalidDocument(
                f"{source} has more than {RAW_MAX:,} feature columns; use fewer or shorter ones"
            )
    if not columns:
        raise InvalidDocument(
            f"{source} has no usable feature: it needs a column of numbers, or of categories that "
            "several items share"
        )
    matrix = np.column_stack(columns)
    if len(columns) <= COLUMNS_MAX:
        return tuple(names), matrix.astype(np.float32)
    reduced = _leading(matrix)
    return tuple(f"component {place + 1}" for place in range(reduced.shape[1])), reduced


def _numbers(table: pl.DataFrame, source: str) -> Iterator[Column]:
    """All columns of a table as numbers."""
    for column in table:
        kind = column.dtype
        inner = kind.inner if isinstance(kind, pl.List | pl.Array) else None
        if kind.is_numeric() or kind == pl.Boolean:
            yield column.name, _checked_numbers(column, source)
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            texts = column.cast(pl.String).to_list()
            yield from _categories(column.name, [_parts(text) for text in texts], len(table))
        elif inner is not None and inner.is_numeric():
            yield from _vector(column, source)
        elif inner is not None and inner in (pl.String, pl.Categorical, pl.Enum):
            lists = [None if cell is None else cell.cast(pl.String).to_list() for cell in column]
            yield from _categories(column.name, lists, len(table))
        elif kind != pl.Null:
            raise InvalidDocument(
                f"the column {column.name!r} of {source} must hold numbers, text, or lists of "
                "either; convert it or leave it out"
            )


def _checked_numbers(column: pl.Series, source: str) -> npt.NDArray[np.float64]:
    """Numbers, NaN where missing; raises for a column that looks like ratings."""
    if plain_name(column.name) in RATING.names or _words(column.name) & _STATISTICS:
        raise InvalidDocument(
            f"the column {column.name!r} of {source} looks like a statistic of ratings, which is "
            "not a public feature; remove it, or rename it if no rating affects it"
        )
    values = column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    _check_finite(values, column.name, source)
    return values


def _words(name: str) -> set[str]:
    """Words of a column name, in lower case: avg_rating and avgRating have the same two."""
    return {word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def _check_finite(values: npt.NDArray[np.float64], name: str, source: str) -> None:
    if np.isinf(values).any() or np.nanmax(np.abs(values), initial=0) > 1e100:
        raise InvalidDocument(
            f"the column {name!r} of {source} has infinite or too large numbers; correct them"
        )


def _parts(text: str | None) -> list[str] | None:
    return None if text is None else text.split(SEPARATOR)


def _categories(name: str, lists: list[list[str] | None], count: int) -> Iterator[Column]:
    """Columns of 0 and 1, the most common category first; missing where an item has no list."""
    sets = [None if parts is None else _plain(parts) for parts in lists]
    holders = Counter(part for parts in sets if parts for part in parts)
    shared = [(-number, part) for part, number in holders.items() if number >= HOLDERS_MIN]
    chosen = {part: place for place, (_, part) in enumerate(sorted(shared)[:CATEGORIES_MAX])}
    memory.require(8 * count * len(chosen), "reading the item features")
    table = np.zeros((len(chosen), count))
    for row, parts in enumerate(sets):
        if not parts:
            table[:, row] = np.nan
            continue
        table[[chosen[part] for part in parts if part in chosen], row] = 1
    yield from ((f"{name}: {part}", table[place]) for part, place in chosen.items())


def _plain(parts: Iterable[str | None]) -> set[str]:
    """Distinct categories without the blanks around them."""
    return {part.strip() for part in parts if part is not None and part.strip()}


def _vector(column: pl.Series, source: str) -> Iterator[Column]:
    """Components of a column of vectors, which all have the same length."""
    lengths = column.list.len() if isinstance(column.dtype, pl.List) else column.arr.len()
    sizes = lengths.drop_nulls().unique().to_list()
    if not sizes:
        return
    if len(sizes) > 1 or not 0 < sizes[0] <= RAW_MAX:
        raise InvalidDocument(
            f"the vectors in the column {column.name!r} of {source} must all have the same length, "
            f"from 1 to {RAW_MAX:,}"
        )
    memory.require(24 * len(column) * sizes[0], "reading the item features")
    present = column.is_not_null().to_numpy()
    table = np.full((len(column), sizes[0]), np.nan)
    flat = column.drop_nulls().explode().cast(pl.Float64).fill_null(float("nan"))
    table[present] = flat.to_numpy().reshape(-1, sizes[0])
    _check_finite(table, column.name, source)
    yield from ((f"{column.name} {place + 1}", table[:, place]) for place in range(sizes[0]))


def _standardised(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Column with mean 0 and variance 1 over all items, 0 where missing; None if it is constant."""
    is_present = ~np.isnan(values)
    present = values[is_present]
    if present.size < 2:
        return None
    largest = np.abs(present).max() or 1.0
    centred = present / largest - (present / largest).mean()
    if (centred**2).mean() <= _FLAT:
        return None
    column = np.zeros(values.size)
    column[is_present] = centred
    column /= np.sqrt((column**2).mean())
    return column


def _leading(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The `COLUMNS_MAX` leading principal components of standardised columns.

    Components keep their variances relative to each other, so a ridge with one weight for all of
    them still shrinks a direction by how little it varies between items, as it would before the
    reduction. Components scaled to equal variances would give the rarest combinations of features
    the weight of the most common. The mean of the variances is 1, as without reduction. The sign of
    a component makes its largest weight positive.
    """
    memory.require(4 * 8 * matrix.size, "reading the item features")
    variances, weights = np.linalg.eigh(matrix.T @ matrix / len(matrix))
    places = np.argsort(-variances, kind="stable")[:COLUMNS_MAX]
    places = places[variances[places] > 1e-9 * variances[places[0]]]
    weights = weights[:, places]
    largest = np.abs(weights).argmax(axis=0)
    weights = weights * np.sign(weights[largest, np.arange(len(places))])
    scores: npt.NDArray[np.float64] = matrix @ weights
    scores /= np.sqrt(variances[places].mean())
    return scores.astype(np.float32)
