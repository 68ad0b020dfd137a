"""Tables that callers provide: item profiles, a user's own ratings, titles."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.ids import id_series, same_type
from taciturn._internal.interchange import Pandas
from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.model.profiles import Profiles
from taciturn.release.tables import profiles_from_frame
from taciturn.tables.columns import column_of
from taciturn.tables.frames import is_path, to_frame
from taciturn.tables.names import ID, ITEM, RATING, TITLE, USER
from taciturn.tables.whole import id_column, read_table

Titles = str | Path | Mapping[Any, str] | pl.DataFrame | Pandas
"""Titles of items: a file or table with an id and a title column, or titles by id."""

_TITLED = (replace(ITEM, aliases=(*ITEM.aliases, ID)), TITLE)


def read_items(path: str | Path, width: int, ids: str | Path | None = None) -> Profiles:
    """Third-party item profiles with `width` factors.

    A Parquet file has the columns item_id, profile and optionally bias. An .npy file has one row
    for each item, and `ids` is a table with a column of item ids in the same order.
    """
    path = Path(path)
    if path.suffix == ".npy":
        return _from_array(path, ids, width)
    frame = read_table(path)
    for name in ("item_id", "profile"):
        if name not in frame.columns:
            raise InvalidDocument(f"{path} must have the columns item_id and profile")
    profile = frame["profile"]
    if profile.dtype not in (pl.List, pl.Array):
        raise InvalidDocument(f"the column profile of {path} must contain lists of numbers")
    lengths = profile.list.len() if profile.dtype == pl.List else None
    found = profile.dtype.size if isinstance(profile.dtype, pl.Array) else None
    if lengths is not None and lengths.n_unique() == 1:
        found = int(lengths[0] or 0)
    if found != width:
        raise InvalidDocument(
            f"the profiles in {path} have {found if found is not None else 'varying numbers of'} "
            f"factors and those of the release have {width}; both must come from the same training"
        )
    bias = frame["bias"] if "bias" in frame.columns else pl.Series([0.0] * len(frame))
    try:
        frame = pl.DataFrame(
            {
                "item_id": frame["item_id"],
                "bias": bias.cast(pl.Float32),
                "profile": profile.cast(pl.Array(pl.Float32, width)),
            }
        )
    except (pl.exceptions.PolarsError, TypeError):
        raise InvalidDocument(f"the profiles and biases in {path} must be numbers") from None
    return profiles_from_frame(frame, "item_id", str(path), width=width)


def _from_array(path: Path, ids: str | Path | None, width: int) -> Profiles:
    if ids is None:
        raise InvalidDocument(
            f"{path} contains no item ids; pass a table of them with {option('item_ids', 'FILE')}"
        )
    try:
        loaded = np.load(path, allow_pickle=False)
        rows: npt.NDArray[Any] = np.asarray(loaded)
    except Exception:
        raise InvalidDocument(f"{path} is not an .npy file saved by NumPy") from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[1] != width:
        raise InvalidDocument(
            f"{path} must have one row of {width} numbers for each item, like the release"
        )
    names = id_column(read_table(ids), ITEM, str(ids))
    if len(names) != len(rows):
        raise InvalidDocument(f"{path} has {len(rows):,} rows, but {ids} has {len(names):,} ids")
    frame = pl.DataFrame(
        {
            "item_id": names,
            "bias": pl.Series(np.zeros(len(rows), dtype=np.float32)),
            "profile": pl.Series(
                np.ascontiguousarray(rows, dtype=np.float32), dtype=pl.Array(pl.Float32, width)
            ),
        }
    )
    return profiles_from_frame(frame, "item_id", str(path), width=width)


def own_ratings(path: str | Path, item_ids: pl.Series) -> dict[Any, float]:
    """Ratings of one user by item id, from a table with an item and a rating column."""
    frame = read_table(path)
    items, values = id_column(frame, ITEM, str(path)), column_of(frame, RATING)
    if values is None:
        raise InvalidDocument(f"{path} has no rating column; name it rating")
    of_one_user(frame, path)
    if len(frame) == 0:
        raise InvalidDocument(f"{path} has no ratings; add at least one")
    items = same_type(items, item_ids, str(path))
    if values.dtype.is_numeric() is False or values.has_nulls() or items.has_nulls():
        raise InvalidDocument(f"{path} must have an item id and a number in every row")
    if items.n_unique() != len(items):
        raise InvalidDocument(f"{path} rates an item twice; keep one rating of each item")
    return dict(zip(items.to_list(), values.cast(pl.Float64).to_list(), strict=True))


def of_one_user(frame: pl.DataFrame, path: str | Path) -> None:
    """Raise if a table with a user column has rows of several users."""
    users = column_of(frame, USER)
    if users is not None and users.n_unique() > 1:
        raise InvalidDocument(f"{path} has ratings of several users; keep those of one user")


def item_titles(source: Titles, ids: pl.Series) -> pl.Series:
    """Title of each item, or null if the source has none."""
    name = str(source) if is_path(source) else "titles"
    if isinstance(source, Mapping):
        keys, titles = id_series(list(source)), list(source.values())
        if not all(title is None or isinstance(title, str) for title in titles):
            raise InvalidParameter("titles must be text by item id, such as {318: 'Amélie'}")
        texts = pl.Series(titles, dtype=pl.String)
    else:
        frame = read_table(source) if is_path(source) else to_frame(source, _TITLED)
        keys, found = id_column(frame, ITEM, name), column_of(frame, TITLE)
        if found is None:
            raise InvalidDocument(f"{name} has no title column; name it title")
        try:
            texts = found.cast(pl.String)
        except pl.exceptions.PolarsError:
            raise InvalidDocument(f"the titles in {name} must be text") from None
    known = pl.DataFrame({"id": same_type(keys, ids, name), "title": texts})
    known = known.filter(pl.col("id").is_not_null()).unique("id", keep="last")
    wanted = ids.alias("id").to_frame()
    return wanted.join(known, on="id", how="left", maintain_order="left")["title"]
