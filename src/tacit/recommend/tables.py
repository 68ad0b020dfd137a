"""Tables that a recommender brings along: item profiles, histories to exclude, titles."""

from pathlib import Path

import numpy as np
import polars as pl

from tacit.data.columns import ALIASES
from tacit.errors import InvalidDocument
from tacit.release.bundle import Table
from tacit.release.read import checked_table


def read_items(path: str | Path, width: int, ids: str | Path | None = None) -> Table:
    """Return third-party item profiles of length `width`.

    A Parquet file has the columns item_id, profile and perhaps bias; an .npy file has one row for
    each item, and `ids` is a table with a column of their ids in the same order.
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
        raise InvalidDocument(f"the column profile of {path} must hold lists of numbers")
    lengths = profile.list.len() if profile.dtype == pl.List else None
    found = profile.dtype.size if isinstance(profile.dtype, pl.Array) else None
    if lengths is not None and lengths.n_unique() == 1:
        found = int(lengths[0])
    if found != width:
        raise InvalidDocument(
            f"the profiles in {path} have length {found if found is not None else 'of all kinds'}, "
            f"those of the release {width}; both must come from the same factors"
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
    except pl.exceptions.PolarsError:
        raise InvalidDocument(f"{path} must hold numbers in its profiles and biases") from None
    return checked_table(frame, "item_id", str(path), count=None, width=width)


def _from_array(path: Path, ids: str | Path | None, width: int) -> Table:
    if ids is None:
        raise InvalidDocument(f"{path} has no ids; give a table of them with --item-ids")
    try:
        rows = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InvalidDocument(f"{path} is not an array that numpy saved") from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[1] != width:
        raise InvalidDocument(
            f"{path} must hold one row of {width} numbers for each item, as the release has"
        )
    names = id_column(read_table(Path(ids)), "item", str(ids))
    if len(names) != len(rows):
        raise InvalidDocument(f"{path} has {len(rows):,} rows, {ids} {len(names):,} ids")
    frame = pl.DataFrame(
        {
            "item_id": names,
            "bias": pl.Series(np.zeros(len(rows), dtype=np.float32)),
            "profile": pl.Series(
                np.ascontiguousarray(rows, dtype=np.float32), dtype=pl.Array(pl.Float32, width)
            ),
        }
    )
    return checked_table(frame, "item_id", str(path), count=None, width=width)


def read_table(path: str | Path) -> pl.DataFrame:
    """Return a CSV, TSV or Parquet file."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
        if start[:4] == b"PAR1":
            return pl.read_parquet(path)
        line = start.split(b"\n", 1)[0]
        separator = max("\t,;|", key=lambda each: line.count(each.encode()))
        return pl.read_csv(path, separator=separator, infer_schema_length=10_000)
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror or error}") from None
    except Exception:
        raise InvalidDocument(f"{path} is not a table in CSV or Parquet form") from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise InvalidDocument(f"{path} is not a table in CSV or Parquet form") from None
        raise


def id_column(frame: pl.DataFrame, role: str, source: str) -> pl.Series:
    """Return the column of user or item ids of a table, by its usual names."""
    names = {name.strip().lower(): name for name in frame.columns}
    for alias in (*ALIASES[role], "id"):
        if alias in names:
            return frame[names[alias]]
    raise InvalidDocument(f"{source} has no column of {role} ids, such as {role}_id")


def same_type(ids: pl.Series, like: pl.Series, source: str) -> pl.Series:
    """Return ids in the type of others, which they are to be compared with."""
    if ids.dtype == like.dtype:
        return ids
    if ids.dtype.is_integer() and like.dtype.is_integer():
        return ids.cast(pl.Int64)
    try:
        return ids.cast(like.dtype)
    except pl.exceptions.PolarsError:
        kind = "whole numbers" if like.dtype.is_integer() else "text"
        raise InvalidDocument(f"the ids in {source} must be {kind}, as in the release") from None


def read_titles(path: str | Path, ids: pl.Series) -> dict[object, str]:
    """Return titles by item id from a table with an id and a title column."""
    frame = read_table(path)
    names = {name.strip().lower(): name for name in frame.columns}
    title = next((names[name] for name in ("title", "name", "titles") if name in names), None)
    if title is None:
        raise InvalidDocument(f"{path} has no column title")
    keys = same_type(id_column(frame, "item", str(path)), ids, str(path))
    return dict(zip(keys.to_list(), frame[title].cast(pl.String).to_list(), strict=True))
