"""Ids of users and items from callers: conversion to the type of a table, and rows in it."""

import numbers
import re
from collections.abc import Iterable, Mapping
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
