"""Item features in the archives of named sets."""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from taciturn.data import load_item_features
from taciturn.data.named import NAMED_SETS
from taciturn.errors import InvalidDocument, InvalidParameter

FLAGS = {"Action": 1, "Comedy": 5, "Drama": 8}


def _item(identifier: int, title: str, *genres: str) -> bytes:
    flags = ["1" if place in {FLAGS[each] for each in genres} else "0" for place in range(19)]
    return f"{identifier}|{title}|01-Jan-1995||http://a|{'|'.join(flags)}\n".encode("latin-1")


LAYOUTS = {
    "ml-100k": (
        "ml-100k/u.item",
        _item(2, "Été (1995)", "Drama")
        + _item(3, "Hat (1995)", "Drama", "Action")
        + _item(5, "Pod (1961)", "Comedy")
        + _item(7, "unknown"),
    ),
    "ml-1m": (
        "ml-1m/movies.dat",
        "2::Été (1995)::Drama\n3::Hat: a :: b (1995)::Drama|Action\n5::Pod (1961)::Comedy\n"
        "7::Unknown::(no genres listed)\n".encode("latin-1"),
    ),
    "ml-latest-small": (
        "ml-latest-small/movies.csv",
        b'movieId,title,genres\n2,"A, B (1995)",Drama\n3,Hat (1995-1998),Drama|Action\n'
        b"5,Pod (1961) ,Comedy\n7,Unknown,(no genres listed)\n",
    ),
}


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(folder: Path, name: str, member: str, content: bytes) -> None:
    with zipfile.ZipFile(folder / NAMED_SETS[name].archive, "w") as archive:
        archive.writestr(member, content)


@pytest.mark.parametrize("name", LAYOUTS)
def test_genres_and_years_are_read_in_every_layout(name: str, data_folder: Path) -> None:
    member, content = LAYOUTS[name]
    write(data_folder, name, member, content)
    found = load_item_features(name)
    assert found.ids.to_list() == [2, 3, 5, 7]
    assert found.columns == ("genre: Drama", "year", "decade: 1990s")
    assert np.array_equal(found.values[3], [0, 0, 0])  # nothing is known of the last
    assert (found.values[:2] > 0).all() and (found.values[2] < 0).all()
    assert found.source == f"{name}:{member.partition('/')[2]}"
    assert found.digest == hashlib.sha256(content).hexdigest()


def test_statistics_of_ratings_in_the_anime_set_are_never_read(data_folder: Path) -> None:
    head = "anime_id,name,genre,type,episodes,rating,members\n"
    first = '1,A,"Drama, School",TV,1,9.1,100\n2,B,Drama,TV,2,1.0,5\n3,C,,Movie,3,,\n'
    write(data_folder, "anime", "anime/anime.csv", (head + first).encode())
    found = load_item_features("anime")
    other = '1,A,"Drama, School",TV,8,1.1,1\n2,B,Drama,TV,9,9.0,7\n3,C,,Movie,7,5,5\n'
    write(data_folder, "anime", "anime/anime.csv", (head + other).encode())
    changed = load_item_features("anime:paper")
    assert found.columns == ("type: TV",)
    assert np.array_equal(found.values, changed.values)


@pytest.mark.parametrize("name", ["netflix", "netflix:paper", "synthetic:10k"])
def test_a_set_without_features_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{name} has no item features"):
        load_item_features(name)


@pytest.mark.parametrize("content", [b"x::y::z\n", b"1\n", b""])
def test_a_damaged_file_of_features_is_refused(data_folder: Path, content: bytes) -> None:
    write(data_folder, "ml-1m", "ml-1m/movies.dat", content)
    with pytest.raises(InvalidDocument, match=r"movies\.dat"):
        load_item_features("ml-1m")


REAL = {
    "ml-100k": ("ml-100k.zip", 1682, 18),
    "ml-1m": ("ml-1m.zip", 3883, 18),
    "ml-latest-small": ("ml-latest-small.zip", 9742, 19),
}


@pytest.mark.parametrize("name", REAL)
def test_real_sets_have_their_published_genres(name: str, real_set: Callable[[str], Path]) -> None:
    file, items, genres = REAL[name]
    real_set(file)
    found = load_item_features(name)
    assert len(found) == items
    assert sum(column.startswith("genre: ") for column in found.columns) == genres
    assert "year" in found.columns
