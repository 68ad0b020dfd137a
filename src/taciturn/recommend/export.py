"""Export of a release to formats that other programs read."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import strict_json
from taciturn._internal.encode import npz_bytes, parquet_bytes
from taciturn._internal.files import check_absent, write_file, write_folder
from taciturn._internal.optional import require
from taciturn._internal.spelling import option
from taciturn.errors import InvalidParameter
from taciturn.model.profiles import Profiles
from taciturn.model.score import By, Score
from taciturn.recommend.serve import Recommender
from taciturn.release.bundle import Release
from taciturn.release.facts import model_to_dict

_PROBES = 200
"""Approximate number of users on which the recall of an index is measured."""


class Form(StrEnum):
    """Export format."""

    PARQUET = "parquet"
    NPZ = "npz"
    ANN = "ann"


def export_release(
    release: Release, form: Form, output: str | Path, by: By | str | None = None
) -> dict[str, Any]:
    """Write a release in another format to a new file or folder, and return facts about it.

    - `parquet`: a folder with items.parquet and users.parquet, one column for each factor, and
      facts.json with the mean;
    - `npz`: NumPy arrays of ids, biases and factors, and the mean;
    - `ann`: a folder with a Voyager inner-product index of the items, and their ids.

    The first two include variances, interest vectors with their parameters, and the prior of a
    user's profile if the release has them. The index is in the order `by`, which `Recommender`
    describes.
    """
    if by is not None and form is not Form.ANN:
        raise InvalidParameter(
            f"{option('by')} applies to {option('to', 'ann')}: only an index has an order"
        )
    output = check_absent(output)
    axes = {"user": release.model.users, "item": release.model.items}
    tables = {role: table for role, table in axes.items() if table is not None}
    if form is Form.PARQUET:
        return _to_parquet(release, tables, output)
    if form is Form.NPZ:
        return _to_npz(release, tables, output)
    return _to_ann(release, output, by)


def _to_parquet(release: Release, tables: dict[str, Profiles], output: Path) -> dict[str, Any]:
    contents: dict[str, bytes] = {}
    for role, table in tables.items():
        columns = {f"{role}_id": table.ids, "bias": pl.Series(table.biases)}
        for number in range(table.factors.shape[1]):
            columns[f"factor_{number}"] = pl.Series(table.factors[:, number])
        if table.bias_variances is not None and table.variances is not None:
            columns["bias_variance"] = pl.Series(table.bias_variances)
            for number in range(table.variances.shape[1]):
                columns[f"variance_{number}"] = pl.Series(table.variances[:, number])
        if table.interests is not None:
            for number in range(table.interests.shape[1]):
                columns[f"interest_{number}"] = pl.Series(table.interests[:, number])
        contents[f"{role}s.parquet"] = parquet_bytes(pl.DataFrame(columns))
    facts = model_to_dict(release.model)
    del facts["scale"]
    contents["facts.json"] = strict_json.dumps(facts).encode()
    _write_files(output, contents)
    return {"files": list(contents)}


def _to_npz(release: Release, tables: dict[str, Profiles], output: Path) -> dict[str, Any]:
    arrays: dict[str, npt.NDArray[Any]] = {"mean": np.array(release.model.mean)}
    for role, table in tables.items():
        is_text = table.ids.dtype == pl.String
        arrays[f"{role}_ids"] = (
            np.array(table.ids.to_list(), dtype=np.str_) if is_text else table.ids.to_numpy()
        )
        arrays[f"{role}_biases"] = table.biases
        arrays[f"{role}_factors"] = table.factors
        if table.bias_variances is not None and table.variances is not None:
            arrays[f"{role}_bias_variances"] = table.bias_variances
            arrays[f"{role}_variances"] = table.variances
            arrays["residual_variance"] = np.array(release.model.residual_variance)
        if table.interests is not None:
            arrays[f"{role}_interests"] = table.interests
    if release.model.interest is not None:
        for name, number in asdict(release.model.interest).items():
            arrays[f"interest_{name}"] = np.array(number)
    prior = release.model.prior
    if prior is not None:
        arrays["prior_residual_variance"] = np.array(prior.residual_variance)
        arrays["prior_variances"] = np.array(prior.variances)
    write_file(output, npz_bytes(arrays))
    return {"arrays": sorted(arrays)}


def _to_ann(release: Release, output: Path, by: By | str | None) -> dict[str, Any]:
    """Write an index of the items' factors and biases in a score.

    By interest, an item is (interest vector, w × factors, w × bias) with the rating weight w, and a
    query is (interest vector, factors, 1). By rating, they are (factors, bias) and (factors, 1).
    """
    voyager = require("voyager", "ann")
    items = release.model.items
    if items is None:
        raise InvalidParameter(
            f"the release has no item profiles to index; choose {option('to', 'parquet')} or npz"
        )
    score = Score.of(release.model, by)
    vectors = np.column_stack(score.items(release.model, items)).astype(np.float32)
    index = voyager.Index(
        voyager.Space.InnerProduct, num_dimensions=vectors.shape[1], M=24, ef_construction=400
    )
    index.add_items(vectors, num_threads=1)
    ids = strict_json.dumps(items.ids.to_list()).encode()
    _write_files(output, {"items.voyager": index.as_bytes(), "item_ids.json": ids})
    facts = {"items": len(items), "by": score.by, "recall_at_10": _recall(release, score, index)}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _write_files(output: Path, contents: dict[str, bytes]) -> None:
    def fill(folder: Path) -> None:
        for name, content in contents.items():
            write_file(folder / name, content)

    write_folder(output, fill)


def _recall(release: Release, score: Score, index: Any) -> float | None:
    """Fraction of the exact ten best items that the index finds, over a sample of users."""
    users, items = release.model.users, release.model.items
    if users is None or items is None:
        return None
    count = min(10, len(items))
    rows = np.arange(0, len(users), max(1, len(users) // _PROBES))
    probes = users.ids.gather(rows)
    exact = Recommender(release).recommend(probes, count, by=score.by)
    asked = np.column_stack([score.users(release.model, rows), np.ones(len(rows))])
    found, _ = index.query(asked.astype(np.float32), k=count, query_ef=max(200, 4 * count))
    ids = items.ids
    pairs = {
        (user, ids[int(item)])
        for user, row in zip(probes.to_list(), found, strict=True)
        for item in row
    }
    true = list(zip(exact["user_id"].to_list(), exact["item_id"].to_list(), strict=True))
    return sum(pair in pairs for pair in true) / len(true)
