"""Public item features: facts about items that do not depend on any rating, such as genre or year.

Features are public, so using them costs no privacy. Nothing here reads ratings. Columns are scaled
over the items of the file, never over ratings: the mean of a feature over ratings would be private.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.arrays import checked
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import Ids, id_series, match_rows
from taciturn.data.download import file_digest
from taciturn.data.feature_columns import COLUMNS_MAX, encoded
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.columns import column_of
from taciturn.tables.fields import plain_name
from taciturn.tables.frames import is_path, to_whole_frame
from taciturn.tables.names import ITEM, TITLE, USER
from taciturn.tables.opening import Explained, checked_path
from taciturn.tables.whole import id_column, read_table

IN_MEMORY = "table"
"""Name of a source that is not a file."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ItemFeatures:
    """Public features of items, one row for each item. Build one with `load_item_features`.

    Attributes
    ----------
    ids
        Item ids, sorted and unique: all whole numbers or all text.
    columns
        Names of the columns of `values`.
    values
        Features (items × columns, 32-bit floats), read-only. Each column has mean 0 over the items.
    source
        Name of the source for the certificate: a file name without its folder.
    digest
        SHA-256 of the bytes of the source, before any item was matched.
    """

    ids: pl.Series
    columns: tuple[str, ...]
    values: npt.NDArray[np.float32]
    source: str
    digest: str

    def __post_init__(self) -> None:
        hint = "build features with taciturn.load_item_features"
        validate.instance("ids", self.ids, pl.Series, hint)
        columns = validate.several("columns", self.columns, hint)
        for name in columns:
            validate.instance("each of the columns", name, str, hint)
        values = np.array(checked("values", self.values, "f", dimensions=2), dtype=np.float32)
        if values.shape != (len(self.ids), len(columns)) or not np.isfinite(values).all():
            raise InvalidParameter(
                "values must have a row for each id and a column for each name, all finite"
            )
        if len(columns) > COLUMNS_MAX:
            raise InvalidParameter(
                f"item features may have at most {COLUMNS_MAX} columns, got {len(columns):,}; "
                "load_item_features reduces them"
            )
        if not (isinstance(self.digest, str) and re.fullmatch("[0-9a-f]{64}", self.digest)):
            raise InvalidParameter("digest must be 64 hexadecimal digits, such as a SHA-256")
        values.flags.writeable = False
        object.__setattr__(self, "ids", _sorted_ids(self.ids, hint))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "source", plain_source(self.source))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"ItemFeatures(source={self.source!r}, items={len(self)}, columns={len(self.columns)})"
        )

    def fingerprint(self) -> bytes:
        """SHA-256 of the source and of the values, which also depend on the chosen columns."""
        return hashlib.sha256(self.digest.encode() + self.values.tobytes()).digest()

    def aligned(self, item_ids: Ids) -> npt.NDArray[np.float64]:
        """Features of items in the order of `item_ids`; zeros for items without features.

        A whole number and its plain decimal text are the same id; 007 is not 7. Zero is the mean of
        each feature, so an item without features counts as an average one.
        """
        rows = match_rows(id_series(item_ids), self.ids)
        return np.where((rows >= 0)[:, None], self.values[rows], 0).astype(np.float64)


def read_item_features(source: object, *, columns: Sequence[str] | None = None) -> ItemFeatures:
    """Read public item features from a file or a table in memory; see `load_item_features`."""
    check_fork()
    if is_path(source):
        path = checked_path(source)
        frame = read_table(_one_file(path))
        with Explained(path):
            digest = file_digest(Path(path), "sha256")
        return features_from_frame(frame, Path(path).name, digest, columns)
    frame = to_whole_frame(source)
    return features_from_frame(frame, IN_MEMORY, table_digest(frame), columns)


def features_from_frame(
    frame: pl.DataFrame, source: str, digest: str, columns: Sequence[str] | None = None
) -> ItemFeatures:
    """Features in a table of items. Titles are not features, and neither are the ids."""
    if column_of(frame, USER) is not None:
        raise InvalidDocument(
            f"{source} has a column of users, so it is not a table of public item features; pass a "
            "table with one row for each item"
        )
    ids = id_column(frame, ITEM, source)
    kept = _chosen(frame, columns, source)
    ids, id_name = _checked_ids(ids, source), ids.name
    order = ids.arg_sort()
    table = frame[order].select(name for name in kept if name != id_name)
    names, values = encoded(table, source)
    return ItemFeatures(
        ids=ids.gather(order), columns=names, values=values, source=source, digest=digest
    )


def table_digest(frame: pl.DataFrame) -> str:
    """SHA-256 of a table in memory: names and types of its columns, then its cells as JSON."""
    digest = hashlib.sha256()
    for column in frame:
        digest.update(_json([column.name, str(column.dtype), len(column)]))
        for cell in column:
            digest.update(_json(cell.to_list() if isinstance(cell, pl.Series) else cell))
    return digest.hexdigest()


def plain_source(name: object) -> str:
    """Name of a source in the form of `validate.SOURCE_NAME`; the end of a long name is kept."""
    plain = re.sub(r"[^A-Za-z0-9.:_+-]", "_", validate.instance("source", name, str, "a name"))
    return plain[-64:] or IN_MEMORY


def _json(cell: Any) -> bytes:
    return json.dumps(cell, default=str).encode() + b"\n"


def _one_file(path: str) -> str:
    """Path of a file; raises for a folder, a glob or a URL, whose bytes have no single SHA-256."""
    if "://" in path:
        raise InvalidDocument(f"item features must be a local file; download {path} first")
    with Explained(path):
        if Path(path).is_dir():
            raise InvalidDocument(f"{path} is a folder; item features must be one file")
        if not Path(path).exists():
            raise FileNotFoundError(path)
    return path


def _chosen(frame: pl.DataFrame, columns: object, source: str) -> list[str]:
    """Names of the columns to use: those that the caller chose, or all but titles."""
    if columns is None:
        return [name for name in frame.columns if plain_name(name) not in TITLE.names]
    chosen = validate.several("columns", columns, "such as ['genre', 'year']")
    for name in chosen:
        if name not in frame.columns:
            raise InvalidDocument(f"{source} has no column {validate.shown(name)}; check columns")
    return list(dict.fromkeys(chosen))


def _checked_ids(ids: pl.Series, source: str) -> pl.Series:
    """Ids as 64-bit integers or text; raises if one is missing or repeated."""
    if ids.dtype in (pl.Categorical, pl.Enum):
        ids = ids.cast(pl.String)
    if not (ids.dtype.is_integer() or ids.dtype == pl.String):
        raise InvalidDocument(f"the item ids in {source} must be all whole numbers or all text")
    ids = ids.cast(pl.Int64 if ids.dtype.is_integer() else pl.String, strict=False)
    if ids.has_nulls() or ids.n_unique() != len(ids):
        raise InvalidDocument(
            f"{source} contains missing or duplicate item ids; list each item once"
        )
    return ids


def _sorted_ids(ids: pl.Series, hint: str) -> pl.Series:
    ids = _checked_ids(ids, "ids")
    if not ids.is_sorted():
        raise InvalidParameter(f"ids must be sorted; {hint}")
    return ids
