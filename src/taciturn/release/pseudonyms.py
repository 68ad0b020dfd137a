"""Private map from user ids to pseudonyms: made, extended, read and written.

A later training may keep the pseudonyms of an earlier one. Its map has all rows of the earlier map,
also those of users who have left, and one for each new user.
"""

import hashlib
from pathlib import Path

import polars as pl

from taciturn._internal.encode import Private, parquet_bytes
from taciturn._internal.files import write_file
from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument
from taciturn.tables.opening import is_parquet
from taciturn.tables.whole import read_table

USER_ID, PSEUDONYM = "user_id", "pseudonym"
"""Columns of the map."""

_FORM = r"^[0-9a-f]{32}$"
"""Form of a pseudonym: 16 bytes in hexadecimal digits."""


def make_pseudonyms(
    ids: pl.Series, secret: bytes, known: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Private map from user ids to pseudonyms, which look random to whoever lacks the secret.

    With `known`, an earlier map, its rows come first and only the other ids get new pseudonyms.
    """
    names = [
        hashlib.blake2b(b"%d" % place, key=secret, digest_size=16).hexdigest()
        for place in range(len(ids))
    ]
    made = pl.DataFrame({USER_ID: ids, PSEUDONYM: pl.Series(names, dtype=pl.String)})
    if known is None:
        return made
    earlier = known.with_columns(same_ids(known, ids))
    return pl.concat([earlier, made.join(earlier, on=USER_ID, how="anti", maintain_order="left")])


def pseudonyms_of(ids: pl.Series, pseudonyms: pl.DataFrame) -> pl.Series:
    """Pseudonym of each id; raises if the map lacks one."""
    wanted = ids.alias(USER_ID).to_frame()
    found = wanted.join(pseudonyms, on=USER_ID, how="left", maintain_order="left")
    if len(found) != len(ids) or found[PSEUDONYM].has_nulls():
        raise InvalidDocument("the map of pseudonyms does not have each user exactly once")
    return found[PSEUDONYM]


def same_ids(known: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """User ids of an earlier map in the type of `ids`; raises if they are of another kind."""
    found = known[USER_ID]
    if found.dtype == ids.dtype:
        return found
    if not (found.dtype.is_integer() and ids.dtype.is_integer()):
        kinds = ["whole numbers" if each.dtype.is_integer() else "text" for each in (found, ids)]
        raise InvalidDocument(
            f"the user ids of {option('pseudonyms_in')} are {kinds[0]} and those of the ratings "
            "are "
            f"{kinds[1]}; read the ratings from the same kind of file as before"
        )
    try:
        return found.cast(ids.dtype)
    except pl.exceptions.PolarsError:
        raise InvalidDocument(
            f"the user ids of {option('pseudonyms_in')} are outside the range of those of the "
            "ratings"
        ) from None


def read_pseudonyms(path: str | Path) -> pl.DataFrame:
    """Map of an earlier training, from its private file; raises unless it is one-to-one."""
    foreign = InvalidDocument(
        f"{path} is not a map of pseudonyms: pass a file that an earlier "
        f"training wrote ({option('pseudonyms_out', python='pseudonyms')}), with the "
        f"columns {USER_ID} and {PSEUDONYM}"
    )
    if Path(path).is_file() and not is_parquet(str(path)):
        raise foreign
    known = read_table(path)
    if known.columns != [USER_ID, PSEUDONYM] or known.schema[PSEUDONYM] != pl.String:
        raise foreign
    ids, names = known[USER_ID], known[PSEUDONYM]
    if not (ids.dtype.is_integer() or ids.dtype == pl.String) or ids.has_nulls():
        raise foreign
    if not names.str.contains(_FORM).fill_null(value=False).all():
        raise foreign
    for column, problem in ((ids, "a user twice"), (names, "a pseudonym twice")):
        if column.n_unique() != len(column):
            raise InvalidDocument(
                f"{path} has {problem}; a map of pseudonyms has each user and each pseudonym once"
            )
    return known


def write_pseudonyms(pseudonyms: pl.DataFrame, path: Path) -> None:
    """Write the private map from ids to pseudonyms, readable by its owner only."""
    content = parquet_bytes(pseudonyms, private=Private.PSEUDONYMS)
    write_file(path, content, is_private=True, replace=True)
