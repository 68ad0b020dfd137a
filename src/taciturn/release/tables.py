"""Profile tables: writing and checking the columns of items.parquet and users.parquet."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.errors import CheckFailed, InvalidDocument, TaciturnError
from taciturn.model.profiles import Floats, Profiles
from taciturn.release.facts import NUMBER_MAX

_VARIANCES = ["bias_variance", "profile_variance"]


def profiles_to_frame(profiles: Profiles, id_name: str) -> pl.DataFrame:
    """Table of profiles: ids, biases, factors, and variances if there are any."""
    columns = {
        id_name: profiles.ids,
        "bias": pl.Series(profiles.biases, dtype=pl.Float32),
        "profile": _lists(profiles.factors),
    }
    if profiles.bias_variances is not None and profiles.variances is not None:
        columns["bias_variance"] = pl.Series(profiles.bias_variances, dtype=pl.Float32)
        columns["profile_variance"] = _lists(profiles.variances)
    return pl.DataFrame(columns)


def _lists(rows: Floats) -> pl.Series:
    # polars misreads the shape of an array without columns.
    values: Any = np.ascontiguousarray(rows) if rows.shape[1] else [[]] * len(rows)
    return pl.Series(values, dtype=pl.Array(pl.Float32, rows.shape[1]))


def profiles_from_parquet(
    content: bytes, name: str, id_name: str, *, count: int, width: int, has_variances: bool
) -> Profiles:
    """Profiles from a table of a release, fully checked."""
    damaged = InvalidDocument(f"{name} is not a table of profiles")
    try:
        # Check the size in the footer before decompressing anything.
        lazy = pl.scan_parquet(io.BytesIO(content))
        rows = lazy.select(pl.len()).collect().item()
        columns = [id_name, "bias", "profile"]
        if has_variances:
            columns += _VARIANCES
        if lazy.collect_schema().names() != columns:
            raise damaged
        if set(pl.read_parquet_metadata(io.BytesIO(content))) - {"ARROW:schema"}:
            raise InvalidDocument(f"{name} contains metadata besides its table")
        if rows != count:
            raise CheckFailed(f"{name} has {rows:,} rows, but the facts state {count:,}")
        frame = pl.read_parquet(io.BytesIO(content), use_statistics=False)
    except TaciturnError:
        raise
    except Exception:
        raise damaged from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise damaged from None
        raise
    return profiles_from_frame(frame, id_name, name, width=width)


def profiles_from_frame(frame: pl.DataFrame, id_name: str, name: str, *, width: int) -> Profiles:
    """Checked profiles from a table with the columns `id_name`, bias and profile.

    Reads the columns of variances if the table has them.
    """
    ids = frame[id_name]
    is_number = ids.dtype.is_integer() and ids.dtype != pl.Int128
    if not (is_number or ids.dtype == pl.String):
        raise InvalidDocument(f"the ids in {name} must be whole numbers or text")
    if len(frame) == 0:
        raise InvalidDocument(f"{name} has no rows")
    if ids.has_nulls() or ids.n_unique() != len(ids):
        raise InvalidDocument(f"{name} contains missing or duplicate ids")
    biases, factors = _numbers(frame["bias"], frame["profile"], name, width)
    profiles = Profiles(ids=ids, biases=biases, factors=factors)
    if not set(_VARIANCES) <= set(frame.columns):
        return profiles
    bias_variances, variances = _numbers(frame[_VARIANCES[0]], frame[_VARIANCES[1]], name, width)
    if min(bias_variances.min(initial=0), variances.min(initial=0)) < 0:
        raise InvalidDocument(f"{name} contains a negative variance")
    return replace(profiles, bias_variances=bias_variances, variances=variances)


def _numbers(
    biases: pl.Series, profiles: pl.Series, name: str, width: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Checked column of numbers and column of lists of numbers, as arrays."""
    if profiles.dtype != pl.Array(pl.Float32, width):
        raise InvalidDocument(f"the profiles in {name} must be arrays of {width} 32-bit floats")
    if biases.dtype != pl.Float32 or biases.has_nulls() or profiles.has_nulls():
        raise InvalidDocument(f"{name} must have a 32-bit bias and a profile in every row")
    flat = profiles.explode() if width else pl.Series([], dtype=pl.Float32)
    for numbers in (flat, biases):
        # polars compares NaN as greater than any number.
        if numbers.has_nulls() or not ((numbers.abs() < NUMBER_MAX) & numbers.is_finite()).all():
            raise InvalidDocument(f"{name} contains a number that is not finite or is too large")
    rows = flat.to_numpy().reshape(len(biases), width)
    return np.ascontiguousarray(biases.to_numpy()), np.ascontiguousarray(rows)
