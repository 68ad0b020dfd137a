"""Serving a release by ids, compared with slow references."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from taciturn.errors import InvalidDocument, InvalidParameter, NotPersonalised, OutputError
from taciturn.model.factor_model import FactorModel
from taciturn.recommend.export import Form, export_release
from taciturn.recommend.serve import Recommender
from taciturn.recommend.tables import item_titles, own_ratings, read_items
from taciturn.release.bundle import Release
from taciturn.release.facts import Facts
from taciturn.release.read import load_release
from taciturn.tables.whole import read_table
from tests.model.helpers import SCALE, profiles
from tests.release.helpers import certificate, small_fit, write_small

PROOF = certificate(small_fit())


def release(
    users: int = 30, items: int = 50, width: int = 4, seed: int = 0, prefix: str | None = None
) -> Release:
    return Release(
        path=Path("nowhere"),
        certificate=PROOF,
        facts=Facts(
            solver="gradient", settings={}, taciturn="0", date=date(2026, 1, 31), user_ids="ids"
        ),
        model=FactorModel(
            scale=SCALE,
            mean=3.0,
            users=profiles(users, width, seed, prefix),
            items=profiles(items, width, seed + 1, prefix),
        ),
    )


def changed(whole: Release, **axes: Any) -> Release:
    """A release with other profiles on one axis, or none."""
    return replace(whole, model=replace(whole.model, **axes))


def scores(given: Release) -> npt.NDArray[np.float64]:
    users, items = given.model.user_profiles, given.model.item_profiles
    product = users.factors.astype(np.float64) @ items.factors.T.astype(np.float64)
    biases = users.biases[:, None] + items.biases[None, :]
    return np.asarray(3.0 + biases + product, dtype=np.float64)


@pytest.mark.parametrize("prefix", [None, "film-"])
@pytest.mark.parametrize("threads", [1, 3])
def test_recommendations_have_the_ids_of_the_release(prefix: str | None, threads: int) -> None:
    whole = release(users=700, prefix=prefix)
    assert whole.model.users is not None and whole.model.items is not None
    found = Recommender(whole, threads=threads).recommend(whole.model.users.ids, 7)
    expected = np.argsort(-scores(whole), axis=1)[:, :7]
    assert found["user_id"].to_list() == [
        u for u in whole.model.users.ids.to_list() for _ in range(7)
    ]
    assert found["item_id"].to_list() == whole.model.items.ids.gather(expected.ravel()).to_list()
    assert found["rank"].to_list() == list(range(1, 8)) * 700
    exact = np.take_along_axis(scores(whole), expected, axis=1).ravel()
    assert np.allclose(found["score"].to_numpy(), exact, atol=1e-4)


def test_users_come_in_the_order_asked_for() -> None:
    recommender = Recommender(release())
    one = recommender.recommend([40, 10, 40], 3)
    assert one["user_id"].to_list() == [40] * 3 + [10] * 3 + [40] * 3
    assert one.head(3).equals(one.tail(3))


def test_excluded_items_are_not_recommended() -> None:
    recommender = Recommender(release())
    best = recommender.recommend([10, 13], 3)
    seen = best.select("user_id", "item_id").filter(pl.col("user_id") == 10)
    # Pairs of other users, of unknown items and repeated pairs have no effect.
    more = pl.DataFrame({"user_id": [999, 10, 13], "item_id": [10, 5, 7]})
    after = recommender.recommend([10, 13], 3, exclude=pl.concat([seen, seen, more]))
    mine = after.filter(pl.col("user_id") == 10)["item_id"].to_list()
    assert not set(mine) & set(seen["item_id"].to_list())
    assert after.filter(pl.col("user_id") == 13).equals(best.filter(pl.col("user_id") == 13))


def test_a_user_asked_for_twice_gets_the_same_list() -> None:
    recommender = Recommender(release())
    best = recommender.recommend([40], 3).select("user_id", "item_id")
    after = recommender.recommend([40, 10, 40], 3, exclude=best)
    assert not set(after.filter(pl.col("user_id") == 40)["item_id"]) & set(best["item_id"])
    assert after.head(3).equals(after.tail(3))
    # Pairs in any order of users.
    both = recommender.recommend([10, 13], 4).select("user_id", "item_id")
    left = recommender.recommend([10, 13], 4, exclude=both.reverse())
    assert left.join(both, on=["user_id", "item_id"]).is_empty()


@pytest.mark.parametrize("bad", [10.7, 2**63 + 1, 10**25, None])
def test_ids_of_another_type_are_refused(bad: Any) -> None:
    with pytest.raises((InvalidParameter, InvalidDocument)):
        Recommender(release()).recommend([bad])


def test_unsigned_64_bit_ids_are_served() -> None:
    whole = release()
    assert whole.model.users is not None and whole.model.items is not None
    wide = pl.Series([2**63 + n for n in range(50)], dtype=pl.UInt64)
    recommender = Recommender(changed(whole, items=replace(whole.model.items, ids=wide)))
    pairs = pl.DataFrame({"user_id": [10, 10], "item_id": [3, 5]})
    found = recommender.recommend([10], 2, exclude=pairs)
    assert found["item_id"].to_list()[0] >= 2**63


def test_excluding_all_items_leaves_an_empty_list() -> None:
    whole = release(items=5)
    assert whole.model.items is not None
    pairs = pl.DataFrame({"user_id": [10] * 5, "item_id": whole.model.items.ids})
    assert len(Recommender(whole).recommend([10], 3, exclude=pairs)) == 0
    assert len(Recommender(whole).recommend([10], 50)) == 5


def test_predictions_are_clipped_to_the_scale() -> None:
    whole = release()
    recommender = Recommender(whole)
    assert whole.model.users is not None and whole.model.items is not None
    users, items = [10, 13, 40], [10, 13, 16]
    expected = np.clip(scores(whole)[[0, 1, 10], [0, 1, 2]], 1, 5)
    assert np.allclose(recommender.predict(users, items), expected, atol=1e-5)
    with pytest.raises(InvalidParameter, match="one item for each"):
        recommender.predict([10], [10, 13])


def test_similar_items_are_ranked_by_cosine() -> None:
    whole = release(items=20)
    assert whole.model.items is not None
    unit = whole.model.items.factors / np.linalg.norm(whole.model.items.factors, axis=1)[:, None]
    cosines = unit @ unit[2]
    found = Recommender(whole).similar(16, 4)
    order = [place for place in np.argsort(-cosines) if place != 2][:4]
    assert [each.item_id for each in found] == whole.model.items.ids.gather(order).to_list()
    assert [each.rank for each in found] == [1, 2, 3, 4]
    assert np.allclose([each.score for each in found], cosines[order], atol=1e-5)


def test_items_without_factors_have_no_similar_items() -> None:
    with pytest.raises(InvalidParameter, match="no factors"):
        Recommender(release(items=3, width=0)).similar(13, 9)


def test_unknown_ids_are_refused_by_name() -> None:
    recommender = Recommender(release())
    with pytest.raises(InvalidParameter, match=r"no user 11 .*fold_in"):
        recommender.recommend([10, 11])
    with pytest.raises(InvalidParameter, match="no item 11"):
        recommender.predict([10], [11])
    with pytest.raises(InvalidParameter, match="no item 11"):
        recommender.similar(11)
    with pytest.raises((InvalidParameter, InvalidDocument), match="whole numbers"):
        recommender.recommend(["bob"])
    with pytest.raises((InvalidParameter, InvalidDocument), match="whole numbers"):
        recommender.recommend("bob")
    with pytest.raises(InvalidParameter, match="count"):
        recommender.recommend([10], 0)


def test_a_release_without_items_needs_them_and_one_without_users_serves() -> None:
    whole = release()
    with pytest.raises(InvalidParameter, match="items=FILE"):
        Recommender(changed(whole, items=None))
    alone = Recommender(changed(whole, users=None))
    with pytest.raises(InvalidParameter, match="fold_in"):
        alone.recommend([10])
    assert len(alone.similar(10, 3)) == 3


def test_items_of_another_source_are_served(tmp_path: Path) -> None:
    whole, theirs = release(), profiles(9, 4, 77, prefix="x")
    frame = pl.DataFrame({"item_id": theirs.ids, "profile": theirs.factors.tolist()})
    frame.write_parquet(tmp_path / "items.parquet")
    np.save(tmp_path / "items.npy", theirs.factors.astype(np.float64))
    pl.DataFrame({"item_id": theirs.ids}).write_csv(tmp_path / "ids.csv")
    tables = [
        read_items(tmp_path / "items.parquet", 4),
        read_items(tmp_path / "items.npy", 4, tmp_path / "ids.csv"),
    ]
    assert whole.model.users is not None
    for items in tables:
        found = Recommender(whole, items=items).recommend([10], 1)
        expected = int(np.argmax(theirs.factors @ whole.model.users.factors[0]))
        assert found["item_id"].to_list() == [theirs.ids[expected]]


def test_items_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    theirs = profiles(9, 4, 77)
    frame = pl.DataFrame({"item_id": theirs.ids, "profile": theirs.factors.tolist()})
    file = tmp_path / "items.parquet"
    frame.write_parquet(file)
    with pytest.raises(InvalidDocument, match=r"4 factors and those of the release have 5"):
        read_items(file, 5)
    with pytest.raises(InvalidDocument, match="4 factors"):
        Recommender(release(width=5), items=theirs)
    pl.concat([frame, frame]).write_parquet(file)
    with pytest.raises(InvalidDocument, match="duplicate ids"):
        read_items(file, 4)
    frame.drop("item_id").write_parquet(file)
    with pytest.raises(InvalidDocument, match="item_id and profile"):
        read_items(file, 4)
    frame.with_columns(profile=pl.lit("a")).write_parquet(file)
    with pytest.raises(InvalidDocument, match="lists of numbers"):
        read_items(file, 4)
    np.save(tmp_path / "items.npy", theirs.factors)
    with pytest.raises(InvalidDocument, match="item_ids=FILE"):
        read_items(tmp_path / "items.npy", 4)
    pl.DataFrame({"item_id": [1, 2]}).write_csv(tmp_path / "ids.csv")
    with pytest.raises(InvalidDocument, match="9 rows"):
        read_items(tmp_path / "items.npy", 4, tmp_path / "ids.csv")
    with pytest.raises(InvalidDocument, match="one row of 3"):
        read_items(tmp_path / "items.npy", 3, tmp_path / "ids.csv")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidDocument, match="not an .npy file"):
        read_items(tmp_path / "objects.npy", 4, tmp_path / "ids.csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.with_columns(bias=pl.lit(None, dtype=pl.Float32)), "in every row"),
        (lambda f: f.with_columns(bias=pl.lit(float("nan"))), "not finite"),
        (lambda f: f.with_columns(bias=pl.lit(1e30)), "too large"),
        (lambda f: f.with_columns(profile=pl.lit([0.5, None])), "in every row"),
        (lambda f: f.with_columns(profile=pl.lit([0.5, float("-inf")])), "not finite"),
        (
            lambda f: f.with_columns(profile=pl.lit(None, dtype=pl.Array(pl.Float32, 2))),
            "in every row",
        ),
        (lambda f: f.with_columns(item_id=pl.lit(None, dtype=pl.Int64)), "missing or duplicate"),
        (lambda f: f.with_columns(item_id=pl.lit(1)), "missing or duplicate"),
        (lambda f: f.with_columns(item_id=pl.col("item_id").cast(pl.Int128)), "whole numbers"),
        (lambda f: f.with_columns(item_id=pl.col("item_id").cast(pl.Float64)), "whole numbers"),
    ],
)
def test_items_with_impossible_values_are_refused(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: str
) -> None:
    frame = pl.DataFrame({"item_id": [1, 2], "bias": [0.5, 1.0], "profile": [[1.0, 2.0]] * 2})
    frame.write_parquet(tmp_path / "items.parquet")
    assert len(read_items(tmp_path / "items.parquet", 2)) == 2
    change(frame).write_parquet(tmp_path / "items.parquet")
    with pytest.raises(InvalidDocument, match=words):
        read_items(tmp_path / "items.parquet", 2)


def test_titles_are_read_and_unreadable_tables_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="cannot read"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(InvalidDocument, match=r"cannot read .*broken\.parquet as a table"):
        read_table(tmp_path / "broken.parquet")
    (tmp_path / "titles.csv").write_text("id,name\n10,Ten\n13,Thirteen\n")
    ids = pl.Series([13, 12, 10])
    assert item_titles(tmp_path / "titles.csv", ids).to_list() == ["Thirteen", None, "Ten"]
    (tmp_path / "movies.dat").write_bytes(
        "10::Am\u00e9lie (2001)::Comedy\n13::B::C\n".encode("latin-1")
    )
    assert item_titles(tmp_path / "movies.dat", pl.Series([10]))[0] == "Amélie (2001)"
    (tmp_path / "titles.csv").write_text("id\n10\n")
    with pytest.raises(InvalidDocument, match="no title column"):
        item_titles(tmp_path / "titles.csv", pl.Series([10]))


def test_exports_hold_the_profiles_of_the_release(tmp_path: Path) -> None:
    fit = write_small(tmp_path / "r")
    whole = load_release(tmp_path / "r")
    assert fit.model.items is not None
    export_release(whole, Form.NPZ, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["item_factors"], fit.model.items.factors)
        assert np.array_equal(arrays["item_biases"], fit.model.items.biases)
        assert np.array_equal(arrays["user_biases"], fit.model.user_profiles.biases)
        assert arrays["user_ids"].tolist() == fit.model.user_profiles.ids.to_list()
        assert arrays["mean"] == fit.model.mean
    export_release(whole, Form.PARQUET, tmp_path / "flat")
    frame = pl.read_parquet(tmp_path / "flat" / "items.parquet")
    assert frame.columns == ["item_id", "bias", "factor_0", "factor_1"]
    assert np.array_equal(frame["factor_1"].to_numpy(), fit.model.items.factors[:, 1])
    assert json.loads((tmp_path / "flat" / "facts.json").read_text()) == {"mean": fit.model.mean}
    with pytest.raises(OutputError, match="exists already"):
        export_release(whole, Form.NPZ, tmp_path / "r.npz")
    with pytest.raises(OutputError, match="cannot write"):
        export_release(whole, Form.NPZ, tmp_path / "no" / "r.npz")


def test_an_approximate_index_finds_the_exact_best_item(tmp_path: Path) -> None:
    voyager = pytest.importorskip("voyager", reason="needs the extra ann")
    whole = release(users=100, items=2000, width=10)
    facts = export_release(whole, Form.ANN, tmp_path / "index")
    assert facts["items"] == 2000 and facts["recall_at_10"] > 0.9
    index = voyager.Index.load(str(tmp_path / "index" / "items.voyager"))
    ids = json.loads((tmp_path / "index" / "item_ids.json").read_text())
    assert whole.model.users is not None
    query = np.append(whole.model.users.factors[0], 1).astype(np.float32)
    (best, *_), _ = index.query(query, k=5)
    assert ids[best] == Recommender(whole).recommend([10], 1)["item_id"][0]


def test_a_folded_in_profile_is_served() -> None:
    whole = release(items=400, width=3)
    items, mine = whole.model.item_profiles, np.array([0.3, -0.2, 0.1], dtype=np.float32)
    recommender = Recommender(whole)
    served = recommender.recommend_profile(0.2, mine, 4, exclude=[10, 7])
    scores = 3.0 + 0.2 + items.biases + items.factors @ mine
    assert np.allclose([e.score for e in served], np.sort(scores[1:])[::-1][:4], atol=1e-4)
    assert [each.rank for each in served] == [1, 2, 3, 4]
    assert 10 not in [each.item_id for each in served]
    assert not recommender.recommend_profile(0.0, mine, 3, exclude=items.ids.to_list())
    best = served[0]
    predicted = recommender.predict_profile(0.2, mine, best.item_id)
    assert predicted == pytest.approx(min(best.score, 5.0), abs=1e-5)
    wrong: tuple[Any, ...] = (np.ones(2), np.array([np.nan, 0, 0]))
    for bad in wrong:
        with pytest.raises(InvalidParameter, match="3 finite numbers"):
            recommender.recommend_profile(0.0, bad)


def test_ids_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    """007 is not 7, anywhere in a file; the types of other columns are inferred."""
    file = tmp_path / "own.csv"
    file.write_text("item_id,rating\n12,5\n007,3.5\n,4\n")
    frame = read_table(file)
    assert frame["item_id"].to_list() == ["12", "007", None]
    assert frame["rating"].to_list() == [5.0, 3.5, 4.0]
    file.write_text("item_id,rating\n12,5\n 7,3\n")
    assert read_table(file)["item_id"].to_list() == [12, 7]
    own = own_ratings(file, pl.Series(["12", "7"]))
    assert own == {"12": 5.0, "7": 3.0}


def test_a_release_without_factors_warns_once_that_it_is_not_personalised() -> None:
    recommender = Recommender(release(width=0))
    assert not recommender.is_personalised and Recommender(release()).is_personalised
    with pytest.warns(
        NotPersonalised, match="not personalised: .* the same for every user"
    ) as said:
        best = recommender.recommend([10, 13], 3)
    assert said[0].filename == __file__
    lists = best.partition_by("user_id")
    assert lists[0]["item_id"].to_list() == lists[1]["item_id"].to_list()
    nothing = np.empty(0, dtype=np.float32)
    recommender.recommend([10], 3)  # warnings are errors here
    recommender.recommend_profile(0.0, nothing, 3)
    with pytest.warns(NotPersonalised):
        Recommender(release(width=0)).recommend_profile(0.0, nothing, 3)
