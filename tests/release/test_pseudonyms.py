"""Maps from user ids to pseudonyms: stable across releases, one-to-one, and ours."""

from pathlib import Path

import polars as pl
import pytest

from taciturn.errors import InvalidDocument, InvalidInput
from taciturn.release.pseudonyms import (
    make_pseudonyms,
    pseudonyms_of,
    read_pseudonyms,
    write_pseudonyms,
)

FIRST = make_pseudonyms(pl.Series(["ada", "bob", "cleo"]), b"first run")


def test_known_users_keep_their_pseudonyms_and_new_ones_get_new_ones() -> None:
    ids = pl.Series(["bob", "dora", "ada"])
    extended = make_pseudonyms(ids, b"second run", FIRST)
    assert extended["user_id"].to_list() == ["ada", "bob", "cleo", "dora"]  # cleo has left
    assert extended.head(3).equals(FIRST)
    fresh = make_pseudonyms(ids, b"second run")
    assert extended["pseudonym"][3] == fresh["pseudonym"][1]  # follows from the key of the run
    assert pseudonyms_of(ids, extended).to_list() == [
        extended["pseudonym"][place] for place in (1, 3, 0)
    ]


def test_whole_numbers_of_other_widths_are_the_same_ids() -> None:
    known = make_pseudonyms(pl.Series([1, 2], dtype=pl.Int32), b"first run")
    extended = make_pseudonyms(pl.Series([2, 3], dtype=pl.Int64), b"second run", known)
    assert extended["user_id"].to_list() == [1, 2, 3]
    with pytest.raises(InvalidDocument, match="outside the range"):
        wide = make_pseudonyms(pl.Series([2**40]), b"first run")
        make_pseudonyms(pl.Series([1], dtype=pl.Int32), b"second run", wide)


def test_ids_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="are text and those of the ratings are whole numb"):
        make_pseudonyms(pl.Series([1, 2]), b"second run", FIRST)


def test_a_map_without_a_user_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="each user exactly once"):
        pseudonyms_of(pl.Series(["ada", "eve"]), FIRST)


def test_a_written_map_is_read_back(tmp_path: Path) -> None:
    write_pseudonyms(FIRST, tmp_path / "map")
    assert read_pseudonyms(tmp_path / "map").equals(FIRST)
    assert (tmp_path / "map").stat().st_mode & 0o777 == 0o600


NAMES = FIRST["pseudonym"].to_list()
FOREIGN = {
    "a user twice": pl.DataFrame({"user_id": [1, 1], "pseudonym": NAMES[:2]}),
    "a pseudonym twice": pl.DataFrame({"user_id": [1, 2], "pseudonym": NAMES[:1] * 2}),
    "not a map of pseudonyms: readable names": pl.DataFrame({"user_id": [1], "pseudonym": ["Ada"]}),
    "not a map of pseudonyms: no name": pl.DataFrame(
        {"user_id": [1], "pseudonym": [None]}, schema_overrides={"pseudonym": pl.String}
    ),
    "not a map of pseudonyms: no user": pl.DataFrame(
        {"user_id": [None], "pseudonym": NAMES[:1]}, schema_overrides={"user_id": pl.Int64}
    ),
    "not a map of pseudonyms: half numbers": pl.DataFrame(
        {"user_id": [1.5], "pseudonym": NAMES[:1]}
    ),
    "not a map of pseudonyms: ratings": pl.DataFrame(
        {"user_id": [1], "item_id": [2], "rating": [3.0]}
    ),
    "not a map of pseudonyms: another column": pl.DataFrame(
        {"user_id": [1], "pseudonym": NAMES[:1], "name": ["Ada"]}
    ),
}


@pytest.mark.parametrize("problem", FOREIGN)
def test_a_foreign_or_ambiguous_map_is_refused(tmp_path: Path, problem: str) -> None:
    FOREIGN[problem].write_parquet(tmp_path / "map.parquet")
    with pytest.raises(InvalidDocument, match=problem.split(":")[0]) as caught:
        read_pseudonyms(tmp_path / "map.parquet")
    assert not any(name in str(caught.value) for name in NAMES)  # private values stay private


def test_a_text_file_or_no_file_is_refused(tmp_path: Path) -> None:
    FIRST.write_csv(tmp_path / "map.csv")
    with pytest.raises(InvalidDocument, match="not a map of pseudonyms"):
        read_pseudonyms(tmp_path / "map.csv")
    with pytest.raises(InvalidInput, match="does not exist|no such file"):
        read_pseudonyms(tmp_path / "missing.parquet")
