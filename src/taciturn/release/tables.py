"""Profile tables: writing and checking the columns of items.parquet and users.parquet."""

from typing import Any

import numpy as np
import polars as pl

from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Floats, Profiles
from taciturn.release.facts import NUMBER_MAX
from taciturn.release.plain_parquet import PlainTable, decode, encode

_VARIANCES = ["bias_variance", "profile_variance"]
_INTEREST = "interest"


def profiles_to_frame(profiles: Profiles, id_name: str) -> pl.DataFrame:
    """Table of profiles: ids, biases, factors, and variances and interests if there are any."""
    columns = {
        id_name: profiles.ids,
        "bias": pl.Series(profiles.biases, dtype=pl.Float32),
        "profile": _lists(profiles.factors),
    }
    if profiles.bias_variances is not None and profiles.variances is not None:
        columns["bias_variance"] = pl.Series(profiles.bias_variances, dtype=pl.Float32)
        columns["profile_variance"] = _lists(profiles.variances)
    if profiles.interests is not None:
        columns[_INTEREST] = _lists(profiles.interests)
    return pl.DataFrame(columns)


def _lists(rows: Floats) -> pl.Series:
    # polars misreads the shape of an array without columns.
    values: Any = np.ascontiguousarray(rows) if rows.shape[1] else [[]] * len(rows)
    return pl.Series(values, dtype=pl.Array(pl.Float32, rows.shape[1]))


def table_bytes(profiles: Profiles, id_name: str) -> bytes:
    """Content of the table of a release. Integer ids are written in 64 bits."""
    ids = profiles.ids
    if ids.dtype.is_integer() and ids.dtype != pl.UInt64:
        ids = ids.cast(pl.Int64)
    columns = {"bias": profiles.biases, "profile": profiles.factors}
    if profiles.bias_variances is not None and profiles.variances is not None:
        columns |= dict(zip(_VARIANCES, (profiles.bias_variances, profiles.variances), strict=True))
    if profiles.interests is not None:
        columns[_INTEREST] = profiles.interests
    return encode(
        PlainTable(
            id_name=id_name,
            ids=ids.to_list() if ids.dtype == pl.String else ids.to_numpy(),
            columns=columns,
        )
    )


def profiles_from_parquet(
    content: bytes,
    name: str,
    id_name: str,
    *,
    count: int,
    width: int,
    interest: int = 0,
    has_variances: bool,
) -> Profiles:
    """Profiles from a table of a release, fully checked.

    `width` is the number of factors, and `interest` that of entries of an interest vector.
    """
    widths: dict[str, int | None] = {"bias": None, "profile": width}
    if has_variances:
        widths |= dict(zip(_VARIANCES, (None, width), strict=True))
    if interest:
        widths[_INTEREST] = interest
    table = decode(content, name, id_name, count, widths)
    profiles = Profiles(
        ids=pl.Series(id_name, table.ids),
        biases=table.columns["bias"],
        factors=table.columns["profile"],
        bias_variances=table.columns.get(_VARIANCES[0]),
        variances=table.columns.get(_VARIANCES[1]),
        interests=table.columns.get(_INTEREST),
    )
    return _checked(profiles, name)


def profiles_from_frame(frame: pl.DataFrame, id_name: str, name: str, *, width: int) -> Profiles:
    """Checked profiles from a table with the columns `id_name`, bias and profile."""
    ids = frame[id_name]
    is_number = ids.dtype.is_integer() and ids.dtype != pl.Int128
    if not (is_number or ids.dtype == pl.String):
        raise InvalidDocument(f"the ids in {name} must be whole numbers or text")
    biases, profiles = frame["bias"], frame["profile"]
    if profiles.dtype != pl.Array(pl.Float32, width):
        raise InvalidDocument(f"the profiles in {name} must be arrays of {width} 32-bit floats")
    flat = profiles.explode() if width else pl.Series([], dtype=pl.Float32)
    if biases.dtype != pl.Float32 or any(each.has_nulls() for each in (biases, profiles, flat)):
        raise InvalidDocument(f"{name} must have a 32-bit bias and a profile in every row")
    rows = flat.to_numpy().reshape(len(biases), width)
    return _checked(
        Profiles(
            ids=ids,
            biases=np.ascontiguousarray(biases.to_numpy()),
            factors=np.ascontiguousarray(rows),
        ),
        name,
    )


def _checked(profiles: Profiles, name: str) -> Profiles:
    """The same profiles; raises unless ids are unique and numbers are finite and not too large."""
    if len(profiles) == 0:
        raise InvalidDocument(f"{name} has no rows")
    if profiles.ids.has_nulls() or profiles.ids.n_unique() != len(profiles):
        raise InvalidDocument(f"{name} contains missing or duplicate ids")
    variances = [each for each in (profiles.bias_variances, profiles.variances) if each is not None]
    interests = [] if profiles.interests is None else [profiles.interests]
    for numbers in (profiles.biases, profiles.factors, *variances, *interests):
        with np.errstate(invalid="ignore"):  # the extremes of an array with NaN are NaN
            low, high = numbers.min(initial=0), numbers.max(initial=0)
        if not (low > -NUMBER_MAX and high < NUMBER_MAX):
            raise InvalidDocument(f"{name} contains a number that is not finite or is too large")
    if any(each.min(initial=0) < 0 for each in variances):
        raise InvalidDocument(f"{name} contains a negative variance")
    return profiles
