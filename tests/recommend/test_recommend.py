"""Serving a release: the same as the obvious way, by the caller's ids."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from taciturn.recommend.top import Catalogue

from taciturn import _core
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.model.fold_in import fold_in
from taciturn.recommend.export import Form, export_release
from taciturn.recommend.serve import Recommender
from taciturn.recommend.tables import own_ratings, read_items, read_table, read_titles
from taciturn.release.bundle import Facts, Release, Table
from taciturn.release.read import load_release
from taciturn.scale import Scale
from tests.release.helpers import certificate, small_fit, write_small

SCALE = Scale(low=1, high=5, step=1)
PROOF = certificate(small_fit())


def table(count: int, width: int, seed: int, prefix: str | None = None) -> Table:
    random = np.random.default_rng(seed)
    numbers = np.arange(count) * 3 + 10
    ids = pl.Series([f"{prefix}{n}" for n in numbers]) if prefix else pl.Series(numbers)
    return Table(
        ids=ids,
        biases=random.normal(size=count).astype(np.float32),
        factors=random.normal(size=(count, width)).astype(np.float32),
    )


def release(
    users: int = 30, items: int = 50, width: int = 4, seed: int = 0, prefix: str | None = None
) -> Release:
    facts = Facts(
        solver="gradient",
        settings={},
        taciturn="0",
        scale=SCALE,
        mean=3.0,
        factors=width,
        users=users,
        items=items,
        user_ids="ids",
    )
    return Release(
        path=Path("nowhere"),
        certificate=PROOF,
        facts=facts,
        users=table(users, width, seed, prefix),
        items=table(items, width, seed + 1, prefix),
    )


def scores(given: Release) -> npt.NDArray[np.float64]:
    assert given.users is not None and given.items is not None
    product = given.users.factors.astype(float) @ given.items.factors.T.astype(float)
    return 3.0 + given.users.biases[:, None] + given.items.biases[None, :] + product


@given(
    st.integers(0, 2**32),
    st.integers(1, 20),
    st.integers(1, 200),
    st.integers(0, 12),
    st.integers(1, 40),
    st.booleans(),
)
def test_the_kernel_finds_the_best(
    seed: int, users: int, items: int, width: int, count: int, portable: bool
) -> None:
    """Against sorting everything; small whole numbers make many ties, which go to the first."""
    random = np.random.default_rng(seed)
    factors = random.integers(-2, 3, size=(items, width)).astype(np.float32)
    biases = random.integers(-2, 3, size=items).astype(np.float32)
    wanted = random.integers(-2, 3, size=(users, width)).astype(np.float32)
    mask = random.random((users, items)) < 0.2
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(mask)[1].astype(np.int32)
    count = min(count, items)
    found = np.empty((users, count), dtype=np.int32)
    best = np.empty((users, count), dtype=np.float32)
    catalogue = Catalogue(factors, biases)
    _core.top_k(
        catalogue._factors,
        catalogue._biases,
        wanted,
        starts,
        columns,
        found,
        best,
        0,
        users,
        portable,
    )
    exact = np.where(mask, -np.inf, wanted @ factors.T + biases)
    for user in range(users):
        order = np.lexsort((np.arange(items), -exact[user]))[:count]
        order = order[exact[user][order] > -np.inf]
        assert found[user, : len(order)].tolist() == order.tolist()
        assert (found[user, len(order) :] == -1).all()
        assert np.array_equal(best[user, : len(order)], exact[user][order])


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("count", [1, 10, 40])
def test_the_kernel_finds_the_best_of_many_items(count: int, portable: bool) -> None:
    """More items than the kernel takes at a time, most of the best excluded, with many ties."""
    random = np.random.default_rng(count)
    users, items, width = 40, 6_000, 5
    factors = random.integers(-2, 3, size=(items, width)).astype(np.float32)
    wanted = random.integers(-2, 3, size=(users, width)).astype(np.float32)
    exact = wanted @ factors.T
    mask = (exact >= np.quantile(exact, 0.95, axis=1)[:, None]) & (random.random(exact.shape) < 0.9)
    mask[0] = True  # nothing is left
    mask[1, :-3] = True  # only the last three are
    exact[mask] = -np.inf
    catalogue = Catalogue(factors, np.zeros(items, dtype=np.float32))
    found = np.empty((users, count), dtype=np.int32)
    _core.top_k(
        catalogue._factors,
        catalogue._biases,
        wanted,
        np.concatenate([[0], np.cumsum(mask.sum(axis=1))]),
        np.nonzero(mask)[1].astype(np.int32),
        found,
        np.empty((users, count), dtype=np.float32),
        0,
        users,
        portable,
    )
    order = np.argsort(-exact, axis=1, kind="stable")[:, :count]
    there = np.take_along_axis(exact, order, axis=1) > -np.inf
    assert np.array_equal(found, np.where(there, order, -1))


def test_the_kernel_passes_over_what_is_not_a_number() -> None:
    factors = np.ones((160, 1), dtype=np.float32)
    factors[:40] = np.nan
    catalogue = Catalogue(factors, np.zeros(160, dtype=np.float32))
    starts, none = np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32)
    user = np.ones((1, 1), dtype=np.float32)
    found, _ = catalogue.best(user, 10, starts=starts, columns=none, threads=1)
    assert found.tolist() == [list(range(40, 50))]


def test_the_kernel_refuses_what_is_out_of_range() -> None:
    items = table(5, 2, 0)
    catalogue = Catalogue(items.factors, items.biases)
    arrays = catalogue._factors, catalogue._biases
    out = np.empty((1, 2), dtype=np.int32), np.empty((1, 2), dtype=np.float32)
    for bad in (-1, 16):
        starts, columns = np.array([0, 1]), np.array([bad], dtype=np.int32)
        with pytest.raises(IndexError, match="not there"):
            _core.top_k(*arrays, np.ones((1, 2), dtype=np.float32), starts, columns, *out, 0, 1)
    starts, columns = np.array([0, 2]), np.array([3, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="must rise"):
        _core.top_k(*arrays, np.ones((1, 2), dtype=np.float32), starts, columns, *out, 0, 1)


@pytest.mark.parametrize("prefix", [None, "film-"])
@pytest.mark.parametrize("threads", [1, 3])
def test_recommendations_are_the_callers_own_ids(prefix: str | None, threads: int) -> None:
    whole = release(users=700, prefix=prefix)
    assert whole.users is not None and whole.items is not None
    found = Recommender(whole, threads=threads).recommend(whole.users.ids, 7)
    expected = np.argsort(-scores(whole), axis=1)[:, :7]
    assert found["user_id"].to_list() == [u for u in whole.users.ids.to_list() for _ in range(7)]
    assert found["item_id"].to_list() == whole.items.ids.gather(expected.ravel()).to_list()
    assert found["rank"].to_list() == list(range(1, 8)) * 700
    exact = np.take_along_axis(scores(whole), expected, axis=1).ravel()
    assert np.allclose(found["score"].to_numpy(), exact, atol=1e-4)


def test_some_users_in_any_order() -> None:
    recommender = Recommender(release())
    one = recommender.recommend([40, 10, 40], 3)
    assert one["user_id"].to_list() == [40] * 3 + [10] * 3 + [40] * 3
    assert one.head(3).equals(one.tail(3))


def test_what_is_excluded_is_not_recommended() -> None:
    recommender = Recommender(release())
    best = recommender.recommend([10, 13], 3)
    seen = best.select("user_id", "item_id").filter(pl.col("user_id") == 10)
    # Pairs of other users and items that are not there do no harm; nor does a pair given twice.
    more = pl.DataFrame({"user_id": [999, 10, 13], "item_id": [10, 5, 7]})
    after = recommender.recommend([10, 13], 3, exclude=pl.concat([seen, seen, more]))
    mine = after.filter(pl.col("user_id") == 10)["item_id"].to_list()
    assert not set(mine) & set(seen["item_id"].to_list())
    assert after.filter(pl.col("user_id") == 13).equals(best.filter(pl.col("user_id") == 13))


def test_a_user_who_comes_twice_gets_the_same() -> None:
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
def test_ids_are_never_bent(bad: object) -> None:
    with pytest.raises((InvalidParameter, InvalidDocument)):
        Recommender(release()).recommend([bad])  # type: ignore[list-item]


def test_wide_ids() -> None:
    whole = release()
    assert whole.users is not None and whole.items is not None
    wide = pl.Series([2**63 + n for n in range(50)], dtype=pl.UInt64)
    recommender = Recommender(replace(whole, items=replace(whole.items, ids=wide)))
    pairs = pl.DataFrame({"user_id": [10, 10], "item_id": [3, 5]})
    found = recommender.recommend([10], 2, exclude=pairs)
    assert found["item_id"].to_list()[0] >= 2**63


def test_everything_excluded_leaves_nothing() -> None:
    whole = release(items=5)
    assert whole.items is not None
    pairs = pl.DataFrame({"user_id": [10] * 5, "item_id": whole.items.ids})
    assert len(Recommender(whole).recommend([10], 3, exclude=pairs)) == 0
    assert len(Recommender(whole).recommend([10], 50)) == 5


def test_predictions_are_cut_to_the_scale() -> None:
    whole = release()
    recommender = Recommender(whole)
    assert whole.users is not None and whole.items is not None
    users, items = [10, 13, 40], [10, 13, 16]
    expected = np.clip(scores(whole)[[0, 1, 10], [0, 1, 2]], 1, 5)
    assert np.allclose(recommender.predict(users, items), expected, atol=1e-5)
    with pytest.raises(InvalidParameter, match="one item for each"):
        recommender.predict([10], [10, 13])


def test_similar_items_by_cosine() -> None:
    whole = release(items=20)
    assert whole.items is not None
    unit = whole.items.factors / np.linalg.norm(whole.items.factors, axis=1)[:, None]
    cosines = unit @ unit[2]
    found = Recommender(whole).similar(16, 4)
    order = [place for place in np.argsort(-cosines) if place != 2][:4]
    assert [each.item_id for each in found] == whole.items.ids.gather(order).to_list()
    assert [each.rank for each in found] == [1, 2, 3, 4]
    assert np.allclose([each.score for each in found], cosines[order], atol=1e-5)


def test_items_without_factors_are_like_nothing() -> None:
    with pytest.raises(InvalidParameter, match="alike"):
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
        recommender.recommend(["somebody"])
    with pytest.raises(InvalidParameter, match="in a list"):
        recommender.recommend("somebody")
    with pytest.raises(InvalidParameter, match="count"):
        recommender.recommend([10], 0)


def test_releases_without_one_side() -> None:
    whole = release()
    with pytest.raises(InvalidParameter, match="--items"):
        Recommender(replace(whole, items=None))
    alone = Recommender(replace(whole, users=None))
    with pytest.raises(InvalidParameter, match="fold_in"):
        alone.recommend([10])
    assert len(alone.similar(10, 3)) == 3


def test_items_of_somebody_else(tmp_path: Path) -> None:
    whole, theirs = release(), table(9, 4, 77, prefix="x")
    frame = pl.DataFrame({"item_id": theirs.ids, "profile": theirs.factors.tolist()})
    frame.write_parquet(tmp_path / "items.parquet")
    np.save(tmp_path / "items.npy", theirs.factors.astype(np.float64))
    pl.DataFrame({"item_id": theirs.ids}).write_csv(tmp_path / "ids.csv")
    tables = [
        read_items(tmp_path / "items.parquet", 4),
        read_items(tmp_path / "items.npy", 4, tmp_path / "ids.csv"),
    ]
    assert whole.users is not None
    for items in tables:
        found = Recommender(whole, items=items).recommend([10], 1)
        expected = int(np.argmax(theirs.factors @ whole.users.factors[0]))
        assert found["item_id"].to_list() == [theirs.ids[expected]]


def test_items_that_do_not_fit(tmp_path: Path) -> None:
    theirs = table(9, 4, 77)
    frame = pl.DataFrame({"item_id": theirs.ids, "profile": theirs.factors.tolist()})
    file = tmp_path / "items.parquet"
    frame.write_parquet(file)
    with pytest.raises(InvalidDocument, match=r"length 4, those of the release 5"):
        read_items(file, 5)
    with pytest.raises(InvalidDocument, match="length 4"):
        Recommender(release(width=5), items=theirs)
    pl.concat([frame, frame]).write_parquet(file)
    with pytest.raises(InvalidDocument, match="only once"):
        read_items(file, 4)
    frame.drop("item_id").write_parquet(file)
    with pytest.raises(InvalidDocument, match="item_id and profile"):
        read_items(file, 4)
    frame.with_columns(profile=pl.lit("a")).write_parquet(file)
    with pytest.raises(InvalidDocument, match="lists of numbers"):
        read_items(file, 4)
    np.save(tmp_path / "items.npy", theirs.factors)
    with pytest.raises(InvalidDocument, match="--item-ids"):
        read_items(tmp_path / "items.npy", 4)
    pl.DataFrame({"item_id": [1, 2]}).write_csv(tmp_path / "ids.csv")
    with pytest.raises(InvalidDocument, match="9 rows"):
        read_items(tmp_path / "items.npy", 4, tmp_path / "ids.csv")
    with pytest.raises(InvalidDocument, match="one row of 3"):
        read_items(tmp_path / "items.npy", 3, tmp_path / "ids.csv")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidDocument, match="not an array"):
        read_items(tmp_path / "objects.npy", 4, tmp_path / "ids.csv")


def test_tables_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="cannot read"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(InvalidDocument, match="not a table"):
        read_table(tmp_path / "broken.parquet")
    (tmp_path / "titles.csv").write_text("id,name\n10,Ten\n13,Thirteen\n")
    assert read_titles(tmp_path / "titles.csv", pl.Series([10])) == {10: "Ten", 13: "Thirteen"}
    (tmp_path / "movies.dat").write_bytes(
        "10::Am\u00e9lie (2001)::Comedy\n13::B::C\n".encode("latin-1")
    )
    assert read_titles(tmp_path / "movies.dat", pl.Series([10]))[10] == "Amélie (2001)"
    (tmp_path / "titles.csv").write_text("id\n10\n")
    with pytest.raises(InvalidDocument, match="column title"):
        read_titles(tmp_path / "titles.csv", pl.Series([10]))


def test_exports(tmp_path: Path) -> None:
    fit = write_small(tmp_path / "r")
    whole = load_release(tmp_path / "r")
    assert fit.items is not None
    export_release(whole, Form.NPZ, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["item_factors"], fit.items.factors)
        assert np.array_equal(arrays["item_biases"], fit.items.biases)
        assert np.array_equal(arrays["user_biases"], fit.users.biases)
        assert arrays["user_ids"].tolist() == fit.users.ids.to_list()
        assert arrays["mean"] == fit.mean
    export_release(whole, Form.PARQUET, tmp_path / "flat")
    frame = pl.read_parquet(tmp_path / "flat" / "items.parquet")
    assert frame.columns == ["item_id", "bias", "factor_0", "factor_1"]
    assert np.array_equal(frame["factor_1"].to_numpy(), fit.items.factors[:, 1])
    assert json.loads((tmp_path / "flat" / "facts.json").read_text()) == {"mean": fit.mean}
    with pytest.raises(InvalidDocument, match="exists already"):
        export_release(whole, Form.NPZ, tmp_path / "r.npz")
    with pytest.raises(InvalidDocument, match="cannot write"):
        export_release(whole, Form.NPZ, tmp_path / "no" / "r.npz")


def test_an_index_finds_what_is_exact(tmp_path: Path) -> None:
    voyager = pytest.importorskip("voyager", reason="needs the extra ann")
    whole = release(users=100, items=2000, width=10)
    facts = export_release(whole, Form.ANN, tmp_path / "index")
    assert facts["items"] == 2000 and facts["recall_at_10"] > 0.9
    index = voyager.Index.load(str(tmp_path / "index" / "items.voyager"))
    ids = json.loads((tmp_path / "index" / "item_ids.json").read_text())
    assert whole.users is not None
    query = np.append(whole.users.factors[0], 1).astype(np.float32)
    (best, *_), _ = index.query(query, k=5)
    assert ids[best] == Recommender(whole).recommend([10], 1)["item_id"][0]


def test_folding_somebody_in() -> None:
    """Ratings made by a known profile give that profile back, about."""
    whole = release(items=400, width=3)
    assert whole.users is not None and whole.items is not None
    items = whole.items
    truth, bias = whole.users.factors[0] * 0.3, 0.2
    items = replace(items, biases=items.biases * 0.2)
    values = np.clip(3.0 + bias + items.biases + items.factors @ truth, 1, 5)
    folded = fold_in(
        dict(zip(items.ids.to_list(), values.tolist(), strict=True)),
        items,
        mean=3.0,
        scale=SCALE,
    )
    assert np.allclose(folded.factors, truth, atol=0.05) and abs(folded.bias - bias) < 0.05
    few = fold_in({items.ids[0]: 5.0}, items, mean=3.0, scale=SCALE)
    assert abs(few.bias) < 1.0  # one rating does not make a bias of two stars
    recommender = Recommender(replace(whole, items=items))
    served = recommender.recommend_profile(folded.bias, folded.factors, 4, exclude=[10, 7])
    scores = 3.0 + folded.bias + items.biases + items.factors @ folded.factors
    assert np.allclose([e.score for e in served], np.sort(scores[1:])[::-1][:4], atol=1e-4)
    assert not recommender.recommend_profile(0.0, folded.factors, 3, exclude=items.ids.to_list())
    assert [each.rank for each in served] == [1, 2, 3, 4]
    assert 10 not in [each.item_id for each in served]


def test_folding_in_nothing_and_nonsense() -> None:
    items = table(5, 2, 1)
    nobody = fold_in({999: 3.0}, items, mean=3.0, scale=SCALE)
    assert nobody.bias == 0 and not nobody.factors.any()
    for bad in (6.0, float("nan"), "5"):
        with pytest.raises(InvalidParameter):
            fold_in({10: bad}, items, mean=3.0, scale=SCALE)  # type: ignore[dict-item]
    with pytest.raises(InvalidParameter, match="finite numbers"):
        Recommender(release()).recommend_profile(0.0, np.ones(3, dtype=np.float32))


def test_serving_cannot_import_ratings() -> None:
    code = (
        "import sys\n"
        "import taciturn.recommend.export, taciturn.recommend.serve, taciturn.recommend.tables\n"
        "import taciturn.release.read\n"
        "private = ('taciturn.data.', 'taciturn.mechanisms.', 'taciturn.queries.')\n"
        "forbidden = [m for m in sys.modules if m.startswith(private)\n"
        "             or (m.startswith('taciturn.solvers.') and m != 'taciturn.solvers.catalog')]\n"
        "assert not forbidden, forbidden\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_ids_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    """007 is not 7, wherever in a file it stands; other columns are what they look like."""
    file = tmp_path / "own.csv"
    file.write_text("item_id,rating\n12,5\n007,3.5\n,4\n")
    frame = read_table(file)
    assert frame["item_id"].to_list() == ["12", "007", None]
    assert frame["rating"].to_list() == [5.0, 3.5, 4.0]
    file.write_text("item_id,rating\n12,5\n 7,3\n")
    assert read_table(file)["item_id"].to_list() == [12, 7]
    own = own_ratings(file, pl.Series(["12", "7"]))
    assert own == {"12": 5.0, "7": 3.0}
