"""Public item features: columns as numbers, ids, digests, and ratings that carry them."""

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.units import Unit
from taciturn.data import load, load_item_features
from taciturn.data.feature_columns import CATEGORIES_MAX, COLUMNS_MAX
from taciturn.data.id_lists import with_id_lists, with_item_features
from taciturn.data.item_features import ItemFeatures
from taciturn.data.splits import k_fold, random_split, stratified_split
from taciturn.errors import InvalidDocument, InvalidParameter, TaciturnError
from taciturn.solvers.contract import PublicFacts
from tests.narrow import present
from tests.solvers.helpers import random_ratings

FILMS = pl.DataFrame(
    {
        "item_id": [103, 101, 102, 900],
        "title": ["Alpha", "Beta", "Beta", "Gamma"],
        "genre": ["Drama|War", "Drama", None, "Comedy|War"],
        "year": [1990, 2000, 2010, None],
    }
)


def features(**columns: pl.Series) -> ItemFeatures:
    return load_item_features(FILMS.select("item_id").with_columns(**columns))


def column(found: ItemFeatures, name: str) -> list[float]:
    return [float(value) for value in found.values[:, found.columns.index(name)]]


def test_categories_numbers_and_titles_become_the_expected_columns() -> None:
    found = load_item_features(FILMS)
    assert found.ids.to_list() == [101, 102, 103, 900]
    assert found.columns == ("genre: Drama", "genre: War", "year")  # Comedy is held by one item
    root = 2**0.5
    assert column(found, "year") == pytest.approx([0, root, -root, 0], abs=1e-6)
    drama, unknown, _, other = column(found, "genre: Drama")
    assert unknown == 0 and drama > 0 > other
    assert found.values.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert found.values.var(axis=0) == pytest.approx(1, rel=1e-5)
    assert found.values.dtype == np.float32 and not found.values.flags.writeable


def test_parquet_text_and_frames_have_the_same_features(tmp_path: Path) -> None:
    FILMS.write_csv(tmp_path / "films.csv")
    FILMS.with_columns(pl.col("genre").str.split("|")).write_parquet(tmp_path / "films.parquet")
    frames = [FILMS, FILMS.lazy(), FILMS.to_arrow() if _has_pyarrow() else FILMS]
    sources = [tmp_path / "films.csv", str(tmp_path / "films.parquet"), *frames]
    expected = load_item_features(FILMS)
    for source in sources:
        found = load_item_features(source)
        assert found.columns == expected.columns
        assert np.array_equal(found.values, expected.values)


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_table_of_pandas_has_the_same_features() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({each.name: each.to_numpy() for each in FILMS})
    table["taste"] = [[0.0, 1.0], [1.0, 0.0], None, [2.0, 1.0]]
    expected = load_item_features(FILMS)
    found = load_item_features(table)
    assert found.columns == (*expected.columns, "taste 1", "taste 2")
    assert np.array_equal(found.values[:, : len(expected.columns)], expected.values)


def test_the_digest_is_that_of_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my films.csv"
    FILMS.write_csv(path)
    found = load_item_features(path)
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.source == "my_films.csv"  # never a sentence, and no folder


def test_the_digest_of_a_table_depends_on_every_cell_and_name() -> None:
    same = load_item_features(FILMS.clone())
    assert same.digest == load_item_features(FILMS).digest and same.source == "table"
    others = [
        FILMS.with_columns(year=pl.col("year") + 1),
        FILMS.rename({"year": "made"}),
        FILMS.with_columns(year=pl.col("year").cast(pl.Float64)),
    ]
    digests = {load_item_features(other).digest for other in (FILMS, *others)}
    assert len(digests) == 4


def test_the_order_of_rows_does_not_matter() -> None:
    found, turned = load_item_features(FILMS), load_item_features(FILMS.reverse())
    assert found.columns == turned.columns and np.array_equal(found.values, turned.values)


def test_only_the_most_common_categories_are_kept() -> None:
    names = [f"c{place:03}" for place in range(CATEGORIES_MAX + 10)]
    held = [[*names], [*names], [names[-1]], [names[-1]], ["other"]]
    table = pl.DataFrame({"item_id": range(5), "kind": held, "x": [0, 1, 2, 3, 5]})
    found = load_item_features(table, columns=["kind"])
    assert len(found.columns) <= COLUMNS_MAX
    few = load_item_features(table.with_columns(kind=pl.col("kind").list.tail(3)))
    assert few.columns[0] == f"kind: {names[-1]}"


def test_many_columns_are_reduced_to_principal_components() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(300, 5)) @ random.normal(size=(5, 50))
    vectors += 0.3 * random.normal(size=vectors.shape)
    table = pl.DataFrame({"item_id": range(300), "embedding": vectors})
    found = load_item_features(table)
    assert found.columns[0] == "component 1" and found.values.shape == (300, COLUMNS_MAX)
    variances = found.values.var(axis=0)
    assert (np.diff(variances) <= 1e-6).all() and variances.mean() == pytest.approx(1, rel=1e-5)
    correlations = found.values.T.astype(float) @ found.values / 300
    assert np.abs(correlations - np.diag(variances)).max() < 1e-5
    # Inner products of items are those of all standardised columns, up to the dropped directions.
    scaled = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    full, kept = scaled @ scaled.T, found.values @ found.values.T
    assert np.corrcoef(full.ravel(), kept.ravel())[0, 1] > 0.99


def test_vectors_of_few_components_are_kept() -> None:
    found = features(taste=pl.Series([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], None]))
    assert found.columns == ("taste 1", "taste 2")
    assert found.values[found.ids.to_list().index(900)].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (FILMS.drop("item_id"), "no column of item ids"),
        (FILMS.select("item_id"), "no usable feature"),
        (FILMS.select("item_id", "title"), "no usable feature"),
        (FILMS.select("item_id", constant=pl.lit(7)), "no usable feature"),
        (pl.concat([FILMS, FILMS]), "missing or duplicate item ids"),
        (FILMS.with_columns(item_id=None), "all whole numbers or all text"),
        (FILMS.with_columns(item_id=pl.col("item_id") / 2), "all whole numbers or all text"),
        (FILMS.with_columns(user_id=1), "column of users"),
        (FILMS.with_columns(rating=pl.Series([1.5, 2.0, 3.0, 4.0])), "statistic of ratings"),
        (FILMS.with_columns(day=pl.date(2000, 1, 1)), "must hold numbers, text, or lists"),
        (FILMS.with_columns(x=pl.Series([1.0, float("inf"), 2.0, 3.0])), "infinite or too large"),
        (FILMS.with_columns(x=pl.Series([[1.0], [1.0, 2.0], [2.0], [1.0]])), "the same length"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(table: pl.DataFrame, words: str) -> None:
    with pytest.raises(InvalidDocument, match=words) as error:
        load_item_features(table)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["avg_rating", "averageRating", "num ratings", "IMDBScore", "STARS", "r"]
)
def test_numbers_named_after_ratings_are_refused(name: str) -> None:
    with pytest.raises(InvalidDocument, match="statistic of ratings"):
        features(**{name: pl.Series([1.5, 2.0, 3.0, 4.0])})


@pytest.mark.parametrize("name", ["narrating", "start", "underscored"])
def test_numbers_whose_name_only_contains_such_a_word_are_features(name: str) -> None:
    assert features(**{name: pl.Series([1.5, 2.0, 3.0, 4.0])}).columns == (name,)


def test_unknown_columns_and_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="no column 'length'"):
        load_item_features(FILMS, columns=["length"])
    with pytest.raises(InvalidDocument, match="no such file"):
        load_item_features(tmp_path / "films.csv")
    with pytest.raises(InvalidDocument, match="must be one file"):
        load_item_features(tmp_path)
    with pytest.raises(InvalidDocument, match="download"):
        load_item_features("https://example.org/films.csv")
    with pytest.raises(TaciturnError, match="cannot read a table"):
        load_item_features(7)


def test_rows_are_aligned_by_id_with_zeros_elsewhere() -> None:
    found = load_item_features(FILMS)
    aligned = found.aligned([900, 5, 101])
    assert aligned.dtype == np.float64 and not aligned[1].any()
    assert np.array_equal(aligned[[0, 2]], found.values[[3, 0]])
    assert np.array_equal(found.aligned(["900", "0101", "101"]), aligned)
    text = load_item_features(FILMS.with_columns(pl.col("item_id").cast(pl.String)))
    assert np.array_equal(text.aligned([900, 5, 101]), aligned)


def test_ratings_gain_the_items_of_the_features() -> None:
    ratings = random_ratings(items=6)
    wide = with_item_features(ratings, load_item_features(FILMS))
    assert wide.item_ids.to_list() == [*range(100, 106), 900]
    assert wide.to_frame().equals(ratings.to_frame())
    assert wide.preparation == ratings.preparation  # the items of the ratings are still listed
    assert wide.digest() != with_id_lists(ratings, items=wide.item_ids).digest()


def test_one_digest_is_the_same_with_and_without_features() -> None:
    ratings = random_ratings(items=6)
    assert ratings.pairs_digest() == ratings.digest()
    wide = with_item_features(ratings, load_item_features(FILMS))
    assert wide.pairs_digest() == ratings.pairs_digest()
    digests = {
        wide.replaced(np.zeros(1, dtype=np.int64), np.array([value])).pairs_digest()
        for value in (1.0, 2.0)
    }
    assert len(digests) == 2


def test_text_ids_of_ratings_stay_text() -> None:
    frame = random_ratings(items=6).to_frame().with_columns(pl.col("item_id").cast(pl.String))
    ratings = load(frame, scale="1:5:1")
    wide = with_item_features(ratings, load_item_features(FILMS))
    assert wide.item_ids.to_list() == [*map(str, range(100, 106)), "900"]
    facts = PublicFacts.of(wide, Unit.RATING)
    assert facts.item_features.any(axis=1).tolist() == [False, *[True] * 3, False, False, True]


def test_more_columns_than_a_bound_on_users_allows_are_refused() -> None:
    """Posterior covariances have a column for each; the check of their bound is in 64 bits."""
    names = tuple(f"column {place}" for place in range(33))
    with pytest.raises(InvalidParameter, match="at most 32 columns"):
        ItemFeatures(
            ids=pl.Series([1, 2]),
            columns=names,
            values=np.zeros((2, 33), dtype=np.float32),
            source="table",
            digest="0" * 64,
        )


def test_ids_that_cannot_match_are_refused() -> None:
    ratings = random_ratings(items=6)
    words = load_item_features(FILMS.with_columns(item_id=pl.Series(["a", "b", "c", "d"])))
    with pytest.raises(InvalidDocument, match="must be whole numbers, as in the ratings"):
        with_item_features(ratings, words)
    others = load_item_features(FILMS.with_columns(item_id=pl.col("item_id") + 5000))
    with pytest.raises(InvalidDocument, match="no item of the ratings"):
        with_item_features(ratings, others)


def test_lists_given_later_are_joined_with_the_features() -> None:
    wide = with_item_features(random_ratings(items=6), load_item_features(FILMS))
    listed = with_id_lists(wide, items=[*range(100, 106), 300])
    assert listed.item_ids.to_list() == [*range(100, 106), 300, 900]
    assert listed.preparation.has_item_list
    assert listed.item_features is wide.item_features


def test_splits_and_replacements_keep_the_features() -> None:
    wide = with_item_features(random_ratings(items=6), load_item_features(FILMS))
    parts = [
        *random_split(wide, 0.3),
        *stratified_split(wide, 0.3),
        *next(k_fold(wide, 3)),
        wide.replaced(np.zeros(1, dtype=np.int64), np.ones(1)),
        with_id_lists(wide, users=range(50)),
    ]
    assert all(part.item_features is wide.item_features for part in parts)


@pytest.mark.parametrize("unit", Unit)
def test_public_facts_have_one_row_of_features_for_each_item(unit: Unit) -> None:
    ratings = random_ratings(items=6)
    plain = PublicFacts.of(ratings, unit)
    assert plain.item_features.shape == (6, 0) and plain.features_source is None
    facts = PublicFacts.of(with_item_features(ratings, load_item_features(FILMS)), unit)
    assert facts.item_features.shape == (7, 3)
    assert present(facts.features_source).source == "table"
