"""Exports of releases with interest: all numbers of lists, and an index in their order."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.errors import InvalidParameter
from taciturn.recommend.export import Form, export_release
from taciturn.recommend.serve import Recommender
from taciturn.release.bundle import Release
from tests.model.helpers import INTEREST, factor_model, with_interest
from tests.narrow import present
from tests.recommend.test_recommend import release


def whole(users: int = 30, items: int = 50, width: int = 4) -> Release:
    model = with_interest(factor_model(users=users, items=items, width=width))
    return replace(release(), model=model)


def test_arrays_hold_interests_and_their_parameters(tmp_path: Path) -> None:
    given = whole()
    export_release(given, Form.NPZ, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as arrays:
        for role, profiles in (
            ("user", given.model.user_profiles),
            ("item", given.model.item_profiles),
        ):
            assert np.array_equal(arrays[f"{role}_interests"], present(profiles.interests))
        stated = {name: float(arrays[f"interest_{name}"]) for name in asdict(INTEREST)}
        assert stated == asdict(INTEREST)


def test_tables_hold_interests_and_their_parameters(tmp_path: Path) -> None:
    given = whole()
    export_release(given, Form.PARQUET, tmp_path / "flat")
    for role, profiles in (
        ("user", given.model.user_profiles),
        ("item", given.model.item_profiles),
    ):
        frame = pl.read_parquet(tmp_path / "flat" / f"{role}s.parquet")
        columns = [f"interest_{number}" for number in range(4)]
        assert np.array_equal(frame.select(columns).to_numpy(), present(profiles.interests))
    facts = json.loads((tmp_path / "flat" / "facts.json").read_text())
    assert facts["interest"] == asdict(INTEREST) | {"columns": 4}


def test_exports_without_interest_do_not_mention_it(tmp_path: Path) -> None:
    export_release(release(), Form.PARQUET, tmp_path / "flat")
    columns = pl.read_parquet_schema(tmp_path / "flat" / "items.parquet")
    assert not [name for name in columns if name.startswith("interest")]
    assert "interest" not in json.loads((tmp_path / "flat" / "facts.json").read_text())
    facts = export_release(release(), Form.NPZ, tmp_path / "r.npz")
    assert not [name for name in facts["arrays"] if "interest" in name]


@pytest.mark.parametrize(("by", "width"), [(None, 15), ("interest", 15), ("rating", 11)])
def test_an_index_has_the_order_of_lists(tmp_path: Path, by: str | None, width: int) -> None:
    voyager = pytest.importorskip("voyager", reason="needs the extra ann")
    given = whole(users=100, items=2000, width=10)
    facts = export_release(given, Form.ANN, tmp_path / "index", by)
    assert facts["by"] == (by or "interest") and facts["recall_at_10"] > 0.9
    index = voyager.Index.load(str(tmp_path / "index" / "items.voyager"))
    assert index.num_dimensions == width
    ids = json.loads((tmp_path / "index" / "item_ids.json").read_text())
    users = given.model.user_profiles
    parts = [users.factors[0], [1.0]]
    if by != "rating":
        parts.insert(0, present(users.interests)[0])
    found, _ = index.query(np.concatenate(parts).astype(np.float32), k=10)
    exact = Recommender(given).recommend(users.ids[0], 10, by=by)["item_id"].to_list()
    assert len({ids[row] for row in found} & set(exact)) >= 8


def test_an_index_without_users_is_in_the_order_of_interest(tmp_path: Path) -> None:
    pytest.importorskip("voyager", reason="needs the extra ann")
    given = whole()
    bare = replace(given, model=replace(given.model, users=None))
    facts = export_release(bare, Form.ANN, tmp_path / "index")
    assert facts == {"items": 50, "by": "interest"}


@pytest.mark.parametrize("form", [Form.NPZ, Form.PARQUET])
def test_only_an_index_has_an_order(tmp_path: Path, form: Form) -> None:
    with pytest.raises(InvalidParameter, match="only an index has an order"):
        export_release(whole(), form, tmp_path / "out", "rating")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("by", "words"), [("interest", "no interest"), ("size", "one of")])
def test_an_index_in_an_impossible_order_is_refused(tmp_path: Path, by: str, words: str) -> None:
    pytest.importorskip("voyager", reason="needs the extra ann")
    with pytest.raises(InvalidParameter, match=words):
        export_release(release(), Form.ANN, tmp_path / "out", by)
    assert not (tmp_path / "out").exists()
