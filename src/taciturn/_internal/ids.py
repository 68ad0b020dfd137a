"""Ids of users and items from callers: conversion to the type of a table, and rows in it."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.forks import check_fork
from taciturn.errors import InvalidDocument, InvalidParameter

_WHOLE_NUMBER = "0|-?[1-9][0-9]*"
"""Text that is a whole number. 007 is not 7: the text of an id is converted only if it returns."""

_DIGITS_MAX = 20
"""Maximum length of the text of a 64-bit number."""


def id_series(ids: Sequence[int | str] | pl.Series) -> pl.Series:
    """Ids as a series; raises unless they are all whole numbers or all text."""
    if isinstance(ids, str):
        raise InvalidParameter("pass ids as a list, even a single id")
    try:
        return ids if isinstance(ids, pl.Series) else pl.Series(list(ids))
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise InvalidParameter("ids must be all whole numbers or all text") from None


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
