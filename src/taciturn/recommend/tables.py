"""Tables that a recommender brings along: item profiles, histories to exclude, titles."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Profiles
from taciturn.release.tables import profiles_from_frame
from taciturn.tables.columns import ALIASES


def read_items(path: str | Path, width: int, ids: str | Path | None = None) -> Profiles:
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
        found = int(lengths[0] or 0)
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
    except (pl.exceptions.PolarsError, TypeError):
        raise InvalidDocument(f"{path} must hold numbers in its profiles and biases") from None
    return profiles_from_frame(frame, "item_id", str(path), width=width)


def _from_array(path: Path, ids: str | Path | None, width: int) -> Profiles:
    if ids is None:
        raise InvalidDocument(f"{path} has no ids; give a table of them with --item-ids")
    try:
        loaded = np.load(path, allow_pickle=False)
        rows: npt.NDArray[Any] = np.asarray(loaded)
    except Exception:
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
    return profiles_from_frame(frame, "item_id", str(path), width=width)


def read_table(path: str | Path, *, is_typed: bool = True) -> pl.DataFrame:
    """Return a CSV, TSV or Parquet file; without `is_typed` the columns of text stay text."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
        if start[:4] == b"PAR1":
            return pl.read_parquet(path)
        line = start.split(b"\n", 1)[0]
        if b"::" in line:
            return _double_colons(path.read_bytes())
        separator = max("\t,;|", key=lambda each: line.count(each.encode()))
        text = pl.read_csv(path, separator=separator, infer_schema=False)
        return text.select(_typed(column) for column in text) if is_typed else text
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror or error}") from None
    except Exception:
        raise InvalidDocument(f"{path} is not a table in CSV or Parquet form") from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise InvalidDocument(f"{path} is not a table in CSV or Parquet form") from None
        raise


def _typed(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers, if that is what all of it is; 007 is not."""
    if column.str.contains(r"^\s*[+-]?0\d").any():
        return column
    for kind in (pl.Int64, pl.Float64):
        numbers = column.str.strip_chars().cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def _double_colons(content: bytes) -> pl.DataFrame:
    """Return a table whose fields are separated by two colons, as MovieLens's older files are.

    Without a header, its columns are taken to be id, title and others.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    rows = [line.split("::") for line in text.splitlines() if line]
    header = [field.strip().lower() for field in rows[0]]
    if "title" not in header and "id" not in header:
        header = ["id", "title", *(f"column_{place}" for place in range(2, len(rows[0])))]
        rows = [[], *rows]
    frame = pl.DataFrame(rows[1:], schema=header, orient="row")
    numbers = frame[header[0]].cast(pl.Int64, strict=False)
    return frame if numbers.has_nulls() else frame.with_columns(numbers)


def find_ids(frame: pl.DataFrame, role: str) -> pl.Series | None:
    """Return the column of user or item ids of a table, by its usual names, if there is one."""
    names = {name.strip().lower(): name for name in frame.columns}
    found = next((names[alias] for alias in ALIASES[role] if alias in names), None)
    return frame[found] if found is not None else None


def id_column(frame: pl.DataFrame, role: str, source: str) -> pl.Series:
    """Return the column of ids of a table, which may also be called id."""
    found = find_ids(frame, role)
    if found is None and "id" in frame.columns:
        found = frame["id"]
    if found is None:
        raise InvalidDocument(f"{source} has no column of {role} ids, such as {role}_id")
    return found


def same_type(ids: pl.Series, like: pl.Series, source: str) -> pl.Series:
    """Return ids in the type of others, which they are to be compared with.

    One that has no such form is not there: it becomes null.
    """
    if ids.dtype == like.dtype:
        return ids
    if like.dtype.is_integer() and not (ids.dtype.is_integer() or ids.dtype == pl.String):
        raise InvalidDocument(f"the ids in {source} must be whole numbers, as in the release")
    if like.dtype == pl.String and not (ids.dtype.is_integer() or ids.dtype == pl.Null):
        raise InvalidDocument(f"the ids in {source} must be text, as in the release")
    if like.dtype.is_integer() and ids.dtype == pl.String:
        known = ids.cast(like.dtype, strict=False)
        if known.null_count() > ids.null_count():
            raise InvalidDocument(f"the ids in {source} must be whole numbers, as in the release")
        return known
    return ids.cast(like.dtype, strict=False)


def own_ratings(path: str | Path, item_ids: pl.Series) -> dict[Any, float]:
    """Return one person's ratings by item id, from a table with an item and a rating column."""
    frame = read_table(path)
    items, values = id_column(frame, "item", str(path)), find_ids(frame, "rating")
    if values is None:
        raise InvalidDocument(f"{path} has no column of ratings, such as rating")
    people = find_ids(frame, "user")
    if people is not None and people.n_unique() > 1:
        raise InvalidDocument(f"{path} has ratings of several users; keep those of one person")
    if len(frame) == 0:
        raise InvalidDocument(f"{path} has no ratings")
    items = same_type(items, item_ids, str(path))
    if values.dtype.is_numeric() is False or values.has_nulls() or items.has_nulls():
        raise InvalidDocument(f"{path} must have an item id and a number in every row")
    if items.n_unique() != len(items):
        raise InvalidDocument(f"{path} rates an item twice; keep one of both")
    return dict(zip(items.to_list(), values.cast(pl.Float64).to_list(), strict=True))


def read_titles(path: str | Path, ids: pl.Series) -> dict[object, str]:
    """Return titles by item id from a table with an id and a title column."""
    frame = read_table(path)
    names = {name.strip().lower(): name for name in frame.columns}
    title = next((names[name] for name in ("title", "name", "titles") if name in names), None)
    if title is None:
        raise InvalidDocument(f"{path} has no column title")
    keys = same_type(id_column(frame, "item", str(path)), ids, str(path))
    try:
        texts = frame[title].cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InvalidDocument(f"the titles in {path} must be text") from None
    return dict(zip(keys.to_list(), texts.to_list(), strict=True))
