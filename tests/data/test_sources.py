"""Named sets: real archives if available, otherwise small ones with the same layout."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data import load
from taciturn.data.named import NAMED_SETS, PaperSlice, is_named, load_named
from taciturn.data.netflix import read_prize_archive
from taciturn.data.options import ReadingOptions
from taciturn.errors import InvalidDocument, InvalidParameter
from tests.narrow import present

# Counts as the data sets' own descriptions give them.
REAL = {
    "ml-100k": ("ml-100k.zip", 100_000, 943, 1_682),
    "ml-1m": ("ml-1m.zip", 1_000_209, 6_040, 3_706),
    "ml-latest-small": ("ml-latest-small.zip", 100_836, 610, 9_724),
    "netflix:paper": ("netflix-slice.parquet", 5_337_656, 11_303, 5_457),
    "anime": ("anime.zip", 419_943, None, None),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_real_sets_have_their_published_counts(name: str, real_set: Callable[[str], Path]) -> None:
    file, count, users, items = REAL[name]
    real_set(file)
    ratings = load(name)
    assert len(ratings) == count
    assert users is None or ratings.shape == (users, items)
    assert ratings.scale == NAMED_SETS[name.partition(":")[0]].scale


@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_the_papers_slice_of_the_anime_sample(real_set: Callable[[str], Path]) -> None:
    real_set("anime.zip")
    ratings = load("anime:paper")
    assert max(ratings.user_ids.to_list()) <= 40_000
    assert np.diff(ratings.by_item.starts).min() > 100


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    return tmp_path


LAYOUTS = {
    "ml-100k": ("ml-100k/u.data", "1\t2\t3\t881250949\n2\t2\t5\t881250950\n"),
    "ml-10m": ("ml-10M100K/ratings.dat", "1::2::3.5::838985046\n2::2::5::838983525\n"),
    "ml-20m": ("ml-20m/ratings.csv", "userId,movieId,rating,timestamp\n1,2,3.5,8\n2,2,5.0,9\n"),
    "ml-25m": ("ml-25m/ratings.csv", "userId,movieId,rating,timestamp\n1,2,0.5,8\n2,2,5.0,9\n"),
    "anime": ("rating.csv", "user_id,anime_id,rating\n1,2,10\n1,3,-1\n2,2,7\n"),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_every_layout_is_read(name: str, data_folder: Path) -> None:
    member, text = LAYOUTS[name]
    with zipfile.ZipFile(data_folder / NAMED_SETS[name].archive, "w") as archive:
        archive.writestr(member, text)
        archive.writestr("other/file.txt", "x")
    ratings = load(name)
    assert len(ratings) == 2 and ratings.item_ids.to_list() == [2]
    if name != "anime":
        assert load(name, timestamps=True).timestamps is not None


def prize_archive(path: Path, films: dict[int, str]) -> None:
    """Write the layout of the Netflix Prize: a tar of text files in a compressed tar."""

    def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))

    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as training:
        for film, lines in films.items():
            add(training, f"training_set/mv_{film:07}.txt", f"{film}:\n{lines}".encode())
    with tarfile.open(path, "w:gz") as outer:
        add(outer, "download/README", b"terms")
        add(outer, "download/training_set.tar", inner.getvalue())


def test_the_netflix_prize_archive_is_read(data_folder: Path) -> None:
    films = {8: "7,4,2005-09-06\n9,1,2004-01-02\n", 3: "7,5,2003-12-31", 5: ""}
    path = data_folder / NAMED_SETS["netflix"].archive
    prize_archive(path, films)
    table = read_prize_archive(path)
    assert sorted(table.select("user_id", "item_id", "rating").rows()) == [
        (7, 3, 5),
        (7, 8, 4),
        (9, 8, 1),
    ]
    with pytest.warns(UserWarning, match="official"):
        ratings = load_named("netflix", ReadingOptions(timestamps=True))
    assert len(ratings) == 3 and present(ratings.timestamps).min() == 1072828800


def badly_named() -> bytes:
    """Zip archive whose member has a name that is flagged as UTF-8 and is not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", "1::2::3::4\n")
    content = bytearray(stream.getvalue())
    start = content.index(b"PK\1\2")
    content[start + 9] |= 8
    content[start + 46] = 0x8C
    return bytes(content)


@pytest.mark.parametrize("content", [b"", b"noise", b"\x1f\x8b\x08noise", badly_named()])
def test_damaged_archives_are_refused(data_folder: Path, content: bytes) -> None:
    for name in ("netflix", "ml-1m"):
        (data_folder / NAMED_SETS[name].archive).write_bytes(content)
        with pytest.warns(UserWarning), pytest.raises(InvalidDocument, match="damaged|expected"):
            load(name)
    with zipfile.ZipFile(data_folder / "ml-1m.zip", "w") as archive:
        archive.writestr("readme", "x")
    with pytest.warns(UserWarning), pytest.raises(InvalidDocument, match=r"has no ratings\.dat"):
        load("ml-1m")


def test_the_papers_filters_select_users_before_items() -> None:
    users = [1] * 4 + [2] * 3 + [3] * 5 + [99] * 4
    items = [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4, 5, 1, 2, 3, 4]
    table = pl.DataFrame({"user_id": users, "item_id": items})
    rule = PaperSlice(user_max=50, user_more_than=2, user_fewer_than=5, item_more_than=1)
    selected = rule.apply(table)
    # User 99 is above the maximum, user 3 has too many ratings; then item 4 has only one left.
    assert set(selected["user_id"]) == {1, 2} and set(selected["item_id"]) == {1, 2, 3}


def test_a_ready_slice_is_used_as_it_is(data_folder: Path) -> None:
    frame = pl.DataFrame({"user_id": [1], "item_id": [2], "rating": [3]})
    frame.write_parquet(data_folder / "netflix-slice.parquet")
    assert len(load("netflix:paper")) == 1


@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_columns_are_found_by_their_header(data_folder: Path) -> None:
    with zipfile.ZipFile(data_folder / "ml-20m.zip", "w") as archive:
        text = "movieId,userId,timestamp,rating\n50,1,9,3.5\n60,2,9,4.0\n"
        archive.writestr("ml-20m/ratings.csv", text)
    assert load("ml-20m").user_ids.to_list() == [1, 2]


@pytest.mark.parametrize(
    "text", ["", "1\t2\n", "1\t2\tSECRET\t4\n", "1\t2\t3\t4\n" * 200 + "1\t3\tSECRET\t4\n"]
)
@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_broken_members_are_refused(data_folder: Path, text: str) -> None:
    with zipfile.ZipFile(data_folder / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", text)
    with pytest.raises(InvalidDocument) as caught:
        load("ml-100k")
    assert "SECRET" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_policies_apply_to_named_sets(data_folder: Path) -> None:
    with zipfile.ZipFile(data_folder / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", "1\t2\t3\t4\n1\t2\t5\t5\n")
    with pytest.raises(InvalidDocument, match="repeat"):
        load("ml-100k")
    assert load("ml-100k", duplicates="last").values().tolist() == [5.0]


@pytest.mark.parametrize(
    "option",
    [{"scale": "1:5"}, {"columns": "user=a"}, {"separator": ","}, {"header": False}],
)
def test_named_sets_refuse_options_they_define_themselves(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="defines its own"):
        load("synthetic:10k", **option)
    with pytest.raises(InvalidParameter, match="no timestamps"):
        load("synthetic:10k", timestamps=True)


@pytest.mark.filterwarnings("ignore:.*not the official archive")
def test_a_licence_is_shown_once(data_folder: Path) -> None:
    with zipfile.ZipFile(data_folder / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", "1\t2\t3\t4\n")
    shown: list[str] = []
    load("ml-100k")
    for _ in range(2):
        load("ml-100k", licence=shown.append)
    assert len(shown) == 1


def test_the_error_for_anime_names_its_source(data_folder: Path) -> None:
    with pytest.raises(InvalidDocument, match="Kaggle"):
        load("anime")


@pytest.mark.parametrize("name", ["ml-2m", "synthetic:2k", "ml-1m:paper", "netflix:slice"])
def test_unknown_names_are_refused(name: str, data_folder: Path) -> None:
    if is_named(name):
        with pytest.raises(InvalidParameter):
            load_named(name)
    else:
        with pytest.raises(InvalidDocument, match="no named set"):
            load(name)
