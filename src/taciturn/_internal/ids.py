"""Ids of users and items from callers: conversion to the type of a table, and rows in it."""

import numbers
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.forks import check_fork
from taciturn._internal.interchange import is_pandas
from taciturn.errors import InvalidDocument, InvalidParameter

Id = int | str

Ids = Iterable[Id]
"""Several ids: a list, an array, or a series of polars or pandas."""

_WHOLE_NUMBER = "0|-?[1-9][0-9]*"
"""Text that is a whole number. 007 is not 7: the text of an id is converted only if it returns."""

_DIGITS_MAX = 20
"""Maximum length of the text of a 64-bit number."""

_NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def is_one_id(ids: object) -> bool:
    """True if `ids` is a single id rather than several."""
    return isinstance(ids, str | numbers.Number | np.generic | None)


def id_series(ids: Id | Ids) -> pl.Series:
    """One id or several as a series; raises unless they are all whole numbers or all text."""
    check_fork()
    several: Any = [ids] if is_one_id(ids) else ids
    if is_pandas(several, "Series", "Index"):
        several = several.to_numpy()
    if isinstance(several, bytes | Mapping) or not isinstance(several, Iterable):
        raise InvalidParameter(f"pass one id or a list of ids, got {validate.shown(several)}")
    if isinstance(several, np.ndarray) and several.ndim != 1:
        raise InvalidParameter("ids must be one-dimensional: one id or a list of ids")
    try:
        series = several if isinstance(several, pl.Series) else pl.Series(_plain(several))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        series = pl.Series([None], dtype=pl.Object)
    if not (series.dtype.is_numeric() or series.dtype in (pl.String, pl.Null)):
        raise InvalidParameter("ids must be all whole numbers or all text")
    return series


def _plain(ids: Ids) -> Any:
    """Ids that polars takes: an array of numbers as it is, anything else as a list."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        return ids
    return [each.item() if isinstance(each, np.generic) else each for each in ids]


def like_ids(values: npt.NDArray[Any], ids: object) -> Any:
    """Numbers, one for each id: an array, or a float for a single id."""
    return float(values[0]) if is_one_id(ids) else values


def parse_id(text: str, ids: pl.Series) -> int | str:
    """Convert an id given as text, such as on the command line, to the type of `ids`."""
    if not ids.dtype.is_integer():
        return text
    if re.fullmatch(_WHOLE_NUMBER, text) is None or len(text) > _DIGITS_MAX:
        raise InvalidParameter(f"{text!r} is not an id: these ids are whole numbers")
    return int(text)


def same_type(ids: pl.Series, like: pl.Series, source: str) -> pl.Series:
    """Ids cast to the type of the ids in `like`, so that they can be compared.

    Ids outside the range of that type become null. Raises if an id is of another kind.
    """
    if ids.dtype == like.dtype:
        return ids
    if like.dtype.is_integer():
        is_text = ids.dtype == pl.String
        if not (ids.dtype.is_integer() or is_text) or (is_text and not _are_numbers(ids).all()):
            raise InvalidDocument(f"the ids in {source} must be whole numbers, as in the release")
    elif like.dtype == pl.String and not (ids.dtype.is_integer() or ids.dtype == pl.Null):
        raise InvalidDocument(f"the ids in {source} must be text, as in the release")
    return ids.cast(like.dtype, strict=False)


def find_rows(ids: pl.Series, table: pl.Series, source: str) -> npt.NDArray[np.int64]:
    """Row of each id in a table, −1 if it is missing. Raises if an id is of another kind."""
    check_fork()
    if len(ids) == 0:
        return np.empty(0, dtype=np.int64)
    known = table.to_frame("id").with_columns(place=pl.Series(np.arange(len(table))))
    wanted = same_type(ids, table, source).alias("id")
    found = wanted.to_frame().join(
        known.unique("id", keep="first"), on="id", how="left", maintain_order="left"
    )
    return found["place"].fill_null(-1).to_numpy()


class IdTable:
    """Ids in row order, with an index that finds rows. It is built for the first ids to be found.

    The index is sorted: the ids themselves if they are whole numbers, and hashes of text. Ids that
    are sorted already are not copied.
    """

    def __init__(self, ids: pl.Series) -> None:
        self._ids = ids
        self._has_numbers = ids.dtype in _NUMBERS
        self._has_index = (self._has_numbers or ids.dtype == pl.String) and not ids.has_nulls()

    @cached_property
    def _index(self) -> "_Sorted":
        keys = self._ids if self._has_numbers else self._ids.hash()
        return _Sorted.of(keys.to_numpy())

    def find(self, ids: pl.Series, source: str) -> npt.NDArray[np.int64]:
        """Row of each id, −1 if it is missing; see `find_rows`."""
        check_fork()
        if not self._has_index or len(ids) == 0 or len(self._ids) == 0:
            return find_rows(ids, self._ids, source)
        wanted = same_type(ids, self._ids, source)
        is_known = ~wanted.is_null().to_numpy() if wanted.has_nulls() else None
        keys = wanted if self._has_numbers else wanted.hash()
        rows = self._index.find((keys if is_known is None else keys.fill_null(0)).to_numpy())
        if is_known is not None:
            rows = np.where(is_known, rows, -1)
        if not self._has_numbers:
            places = np.flatnonzero(rows >= 0)
            if not self._ids[rows[places]].equals(wanted[places]):  # two texts have one hash
                return find_rows(ids, self._ids, source)
        return rows

    def row_of(self, number: int) -> int | None:
        """Row of one whole number, found quicker than a series of it; None if it is missing.

        A table of text has no whole numbers, although `find` finds their digits in it.
        """
        check_fork()
        if not (self._has_index and self._has_numbers and len(self._ids)):
            return None
        bounds = np.iinfo(self._index.keys.dtype)
        if not bounds.min <= number <= bounds.max:
            return None
        row = int(self._index.find(np.array([number], dtype=bounds.dtype))[0])
        return None if row < 0 else row


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sorted:
    """Keys in ascending order, and the row of each; rows in the same order if `rows` is None."""

    keys: npt.NDArray[Any]
    rows: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, keys: npt.NDArray[Any]) -> "_Sorted":
        """Index of keys in row order; of equal keys, the first is found."""
        if (keys[1:] >= keys[:-1]).all():
            return cls(keys=keys, rows=None)
        rows = np.argsort(keys, kind="stable")
        return cls(keys=keys[rows], rows=rows)

    def find(self, keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Row of each key, −1 if it is missing."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        rows = places if self.rows is None else self.rows[places]
        return np.where(self.keys[places] == keys, rows, -1)


def match_rows(ids: pl.Series, table: pl.Series) -> npt.NDArray[np.int64]:
    """Row of each id in a table, −1 if it is missing or of another kind."""
    if ids.dtype == table.dtype and ids.equals(table):
        return np.arange(len(ids))
    if table.dtype.is_integer() and ids.dtype == pl.String:
        ids = ids.set(~_are_numbers(ids), None)
    return find_rows(ids, table, "the ratings")


def _are_numbers(ids: pl.Series) -> pl.Series:
    """Whether each id is the text of a whole number; missing ids count as such."""
    return ids.str.contains(f"^({_WHOLE_NUMBER})$").fill_null(value=True)
