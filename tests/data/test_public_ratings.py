"""Public ratings: reading, matching with private ratings, and what is refused."""

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.data import load, load_public_ratings
from taciturn.data.id_lists import with_id_lists
from taciturn.data.options import ReadingOptions
from taciturn.data.public_ratings import (
    GivenPublicRatings,
    are_alike,
    read_public_ratings,
    shared_items,
    with_public_ratings,
    without_users_of,
)
from taciturn.data.ratings import PublicRatings, Ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from tests.solvers.helpers import random_ratings

RATINGS = random_ratings()
PUBLIC = load_public_ratings(random_ratings(1).to_frame(), scale="1:5:1")


def frame(items: list[object], scale: str = "1:5:1") -> Ratings:
    users = [1] * len(items)
    return load(
        pl.DataFrame({"user_id": users, "item_id": items, "rating": [3.0] * len(items)}),
        scale=scale,
    )


def test_a_file_is_named_with_the_digest_of_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "their ratings.csv"
    random_ratings(1).to_frame().write_csv(file)
    public = load_public_ratings(file, scale="1:5:1")
    assert public.source == "their_ratings.csv"
    assert public.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert "their_ratings.csv" in repr(public)


def test_a_table_and_a_synthetic_set_have_names_of_their_own() -> None:
    assert PUBLIC.source == "table" and len(PUBLIC.digest) == 64
    named = load_public_ratings("synthetic:10k")
    assert named.source == "synthetic:10k"


def test_public_ratings_stay_when_ratings_are_split_or_extended() -> None:
    ratings = with_public_ratings(RATINGS, PUBLIC)
    train, test = random_split(ratings, 0.2, 0)
    users = [*ratings.user_ids, 999]
    for each in (train, test, with_id_lists(ratings, users=users)):
        assert each.public_ratings is PUBLIC
    assert ratings.item_ids.equals(RATINGS.item_ids)


def test_public_ratings_change_the_digest_but_not_that_of_the_pairs() -> None:
    ratings = with_public_ratings(RATINGS, PUBLIC)
    assert ratings.digest() != RATINGS.digest()
    assert ratings.pairs_digest() == RATINGS.pairs_digest()


def test_items_match_by_number_or_by_its_plain_text() -> None:
    private = frame([7, 8, 9])
    public = PublicRatings(ratings=frame(["7", "007", "9"]), source="x", digest="0" * 64)
    rows = shared_items(private, public)
    found = ["" if row < 0 else public.ratings.item_ids[int(row)] for row in rows]
    assert found == ["7", "", "9"]


def test_an_item_without_public_ratings_is_not_shared() -> None:
    listed = with_id_lists(frame([1, 2]), items=[1, 2, 3])
    public = PublicRatings(ratings=listed, source="x", digest="0" * 64)
    assert (shared_items(frame([2, 3]), public) >= 0).tolist() == [True, False]


def test_ratings_without_a_shared_item_are_refused() -> None:
    public = PublicRatings(ratings=frame([1, 2]), source="films.csv", digest="0" * 64)
    with pytest.raises(InvalidDocument, match=r"no item of the ratings is rated in films\.csv"):
        with_public_ratings(RATINGS, public)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("1:5:1", "0.5:5:0.5", True),
        ("1:10:1", "0:10", True),
        ("1:5", "1:5", True),
        ("1:5:1", "0:5", False),
        ("1:5:1", "1:10:1", False),
        ("0:1", "1:5", False),
        ("0:4", "1:5", False),
    ],
)
def test_only_scales_with_nearly_equal_ends_are_alike(one: str, other: str, expected: bool) -> None:
    scales = Scale.parse(one), Scale.parse(other)
    assert are_alike(*scales) is are_alike(*reversed(scales)) is expected


def test_another_scale_is_refused() -> None:
    public = PublicRatings(ratings=frame([100], "1:10:1"), source="x", digest="0" * 64)
    with pytest.raises(InvalidParameter, match="convert the public ratings"):
        with_public_ratings(RATINGS, public)


def test_users_with_equal_ids_are_found_only_on_request() -> None:
    keep = without_users_of(RATINGS, PUBLIC)
    assert not keep.any()
    few = load_public_ratings(
        pl.DataFrame({"user_id": [3], "item_id": [100], "rating": [1.0]}), scale="1:5:1"
    )
    np.testing.assert_array_equal(without_users_of(RATINGS, few), RATINGS.rows() != 2)
    text = load_public_ratings(
        pl.DataFrame({"user_id": ["a"], "item_id": [100], "rating": [1.0]}), scale="1:5:1"
    )
    with pytest.raises(InvalidParameter, match="same_users"):
        without_users_of(RATINGS, text)


def test_a_file_is_read_on_the_scale_of_the_ratings(tmp_path: Path) -> None:
    file = tmp_path / "public.parquet"
    random_ratings(1).to_frame().write_parquet(file)
    joined = GivenPublicRatings(str(file), "x").join(RATINGS).public_ratings
    assert joined is not None and joined.ratings.scale == RATINGS.scale


def test_a_missing_file_is_refused_when_given() -> None:
    with pytest.raises(InvalidDocument, match="there is no file and no named set"):
        GivenPublicRatings("nowhere.csv", "x")


def test_the_source_of_the_ratings_is_refused_as_public_ratings(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    random_ratings(1).to_frame().write_csv(file)
    (tmp_path / "link.csv").symlink_to(file)
    same = [
        (str(file), str(tmp_path / "link.csv")),
        ("ml-1m", "ml-1m"),
        ("netflix:paper", "netflix"),
    ]
    for given, source in same:
        with pytest.raises(InvalidParameter, match="nothing protects public ratings"):
            GivenPublicRatings(given, source)
    GivenPublicRatings("ml-1m", str(file))
    GivenPublicRatings("synthetic:10k", "synthetic:100k")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="one local file"):
        read_public_ratings(tmp_path, ReadingOptions.of(scale="1:5"))


def test_a_digest_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="digest"):
        PublicRatings(ratings=RATINGS, source="x", digest="no")
