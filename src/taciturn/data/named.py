"""Named public sets: their archives, checksums, scales and licences.

An archive is searched for in the folder that the environment variable TACITURN_DATA names, then in
the cache (TACITURN_CACHE, or taciturn in the user's cache folder). If it is in neither, it is
downloaded from its official URL, or from the mirror that TACITURN_MIRROR names. Checksums are those
of the official archives.
"""

import os
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from taciturn.data.download import Progress, download, file_digest
from taciturn.data.netflix import read_prize_archive
from taciturn.data.options import ReadingOptions
from taciturn.data.ratings import Ratings
from taciturn.data.readers import ROLES, read_ratings
from taciturn.data.synthetic import PRESETS, synthetic_ratings
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.expansion import DAMAGED, ExpansionLimit, zip_member
from taciturn.tables.files import TableFile

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_STARS = Scale(low=1, high=5, step=1)
_HALF_STARS = Scale(low=0.5, high=5, step=0.5)
_TO_TEN = Scale(low=1, high=10, step=1)

_MOVIELENS_LICENCE = (
    "MovieLens data: for research. No redistribution or commercial use without permission of the "
    "GroupLens research group. Do not imply endorsement. Cite Harper and Konstan (2015), The "
    "MovieLens Datasets. The full text is in the archive's README."
)
_NETFLIX_LICENCE = (
    "Netflix Prize data: for research, under the terms of the prize. No redistribution, and no "
    "attempt to identify users. The full text is in the archive's README."
)
_ANIME_LICENCE = (
    "Anime Recommendations Database (CooperUnion, on Kaggle): see the licence on its Kaggle page. "
    "Downloading it requires a Kaggle account."
)


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A public set of ratings.

    `archive` is its file name and `member` the end of the name of the ratings file inside. `url`
    is None if the archive must be downloaded by hand. `checksums` are those of the official
    archive, by algorithm.
    """

    name: str
    archive: str
    member: str
    scale: Scale
    licence: str
    about: str
    url: str | None = None
    checksums: dict[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()


def _movielens(name: str, member: str, scale: Scale, about: str, **checksums: str) -> NamedSet:
    return NamedSet(
        name=name,
        archive=f"{name}.zip",
        member=member,
        scale=scale,
        licence=_MOVIELENS_LICENCE,
        about=about,
        url=f"{_GROUPLENS}{name}.zip",
        checksums=checksums,
    )


_SETS = (
    _movielens(
        "ml-100k",
        "u.data",
        _STARS,
        "100,000 ratings of 1,682 films by 943 users",
        md5="0e33842e24a9c977be4e0107933c0723",
        sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    ),
    _movielens(
        "ml-1m",
        "ratings.dat",
        _STARS,
        "1,000,209 ratings of 3,706 films by 6,040 users",
        md5="c4d9eecfca2ab87c1945afe126590906",
        sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    ),
    _movielens(
        "ml-10m",
        "ratings.dat",
        _HALF_STARS,
        "10 million ratings",
        md5="ce571fd55effeba0271552578f2648bd",
        sha256="813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
    ),
    _movielens(
        "ml-20m",
        "ratings.csv",
        _HALF_STARS,
        "20 million ratings",
        md5="cd245b17a1ae2cc31bb14903e1204af3",
        sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
    ),
    _movielens(
        "ml-25m",
        "ratings.csv",
        _HALF_STARS,
        "25 million ratings",
        md5="6b51fb2759a8657d3bfcbfc42b592ada",
        sha256="8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
    ),
    _movielens(
        "ml-latest-small",
        "ratings.csv",
        _HALF_STARS,
        "100,836 ratings of 9,724 films by 610 users",
        sha256="696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
    ),
    NamedSet(
        name="netflix",
        archive="nf_prize_dataset.tar.gz",
        member="training_set",
        scale=_STARS,
        licence=_NETFLIX_LICENCE,
        about="100 million ratings of 17,770 films by 480,189 users",
        url="https://archive.org/download/nf_prize_dataset.tar/nf_prize_dataset.tar.gz",
        checksums={"md5": "a8f23d2d76461211c6b4c0ca6df2547d"},
        variants=("paper",),
    ),
    NamedSet(
        name="anime",
        archive="anime.zip",
        member="rating.csv",
        scale=_TO_TEN,
        licence=_ANIME_LICENCE,
        about="ratings of anime from 1 to 10; must be downloaded from Kaggle by hand",
        variants=("paper",),
    ),
)
NAMED_SETS = {each.name: each for each in _SETS}

_SEPARATORS = {"u.data": "\t", "ratings.dat": "::"}
"""Separators of archive members without a header."""

_ARCHIVE_TYPES = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64, "timestamp": pl.Int64}
"""Column types of the text files in the archives."""


@dataclass(frozen=True, kw_only=True)
class PaperSlice:
    """Subset of a set that the paper used: low user ids, then active users, then popular items."""

    user_max: int
    user_more_than: int = 200
    user_fewer_than: int = 2500
    item_more_than: int = 100

    def apply(self, table: pl.DataFrame) -> pl.DataFrame:
        """Slice of a table with the columns user_id and item_id."""
        table = table.filter(pl.col("user_id") <= self.user_max)
        active = pl.len().over("user_id")
        table = table.filter((active > self.user_more_than) & (active < self.user_fewer_than))
        return table.filter(pl.len().over("item_id") > self.item_more_than)


PAPER_SLICES = {"netflix": PaperSlice(user_max=200_000), "anime": PaperSlice(user_max=40_000)}
READY_SLICE = {"netflix": "netflix-slice.parquet"}


_USUAL = ReadingOptions()


def is_named(source: object) -> bool:
    """True if `source` is the name of a set, with or without a variant."""
    if not isinstance(source, str):
        return False
    name = source.partition(":")[0]
    return name in NAMED_SETS or name == "synthetic"


def might_be_file(source: str) -> bool:
    """True if `source` is an existing path, a glob or a URL."""
    if any(mark in source for mark in "*?[\0") or "://" in source:
        return True
    try:
        return Path(source).exists()
    except OSError:
        return True  # the reader reports the error


def load_named(
    source: str,
    options: ReadingOptions = _USUAL,
    *,
    fetch: bool = True,
    progress: Progress = lambda done, total: None,
    licence: Callable[[str], None] | None = None,
) -> Ratings:
    """Load the ratings of a named set, such as ml-1m, netflix:paper or synthetic:100k.

    A missing archive is downloaded if `fetch` is true. `licence` is called with the licence text
    the first time a set is used. Options that the set defines itself must be left out.
    """
    options.check_named(source)
    name, _, variant = source.partition(":")
    if name == "synthetic":
        if options.timestamps:
            raise InvalidParameter(
                "synthetic ratings have no timestamps; leave out timestamps=True"
            )
        return synthetic_ratings(variant or "100k")
    known = named_set(name)
    archive = locate(source, fetch=fetch, progress=progress)
    if licence is not None:
        _show_licence_once(known, licence)
    table: Path | pl.DataFrame = archive
    if archive.suffix != ".parquet":
        table = _read_archive(known, archive)
        table = PAPER_SLICES[name].apply(table) if variant else table
    ratings = read_ratings(table, replace(options, scale=known.scale))
    if variant or name == "anime":
        return replace(ratings, preparation=replace(ratings.preparation, is_filtered=True))
    return ratings


def locate(
    source: str,
    *,
    fetch: bool = True,
    check: bool = True,
    progress: Progress = lambda done, total: None,
) -> Path:
    """File of a named set: its archive, or a prepared slice of a variant in TACITURN_DATA."""
    name, _, variant = source.partition(":")
    known = named_set(name)
    if variant not in ("", *known.variants):
        choices = " or ".join(f"{name}:{each}" for each in known.variants) or "no variants"
        raise InvalidParameter(f"there is no set {source!r}; {name} has {choices}")
    ready = _in_data_folder(READY_SLICE.get(name, "")) if variant else None
    return ready or find_archive(known, fetch=fetch, check=check, progress=progress)


def named_set(name: str) -> NamedSet:
    """The set with this name."""
    if name not in NAMED_SETS:
        synthetic = ", ".join(f"synthetic:{each}" for each in PRESETS)
        raise InvalidParameter(
            f"there is no set {name!r}; choose from {', '.join(NAMED_SETS)}, {synthetic}"
        )
    return NAMED_SETS[name]


def find_archive(
    known: NamedSet,
    *,
    fetch: bool = True,
    check: bool = True,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Archive of a set: from TACITURN_DATA, from the cache, or downloaded into the cache.

    An archive in TACITURN_DATA whose checksum differs from the official one is used with a warning.
    """
    given = _in_data_folder(known.archive)
    if given:
        if check and any(
            file_digest(given, kind) != digest for kind, digest in known.checksums.items()
        ):
            warnings.warn(
                f"{given} is not the official archive of {known.name}: its checksum differs; it is "
                "used anyway",
                stacklevel=2,
            )
        return given
    cached = cache_folder() / known.archive
    if cached.is_file():
        return cached
    if known.url is None:
        raise InvalidDocument(
            f"{known.name} must be downloaded by hand: {known.licence} Save the file as "
            f"{known.archive} in {cache_folder()} or in the folder that TACITURN_DATA names"
        )
    if not fetch:
        raise InvalidDocument(
            f"{known.name} is not downloaded yet; run: taciturn data get {known.name}"
        )
    mirror = os.environ.get("TACITURN_MIRROR")
    url = f"{mirror.rstrip('/')}/{known.archive}" if mirror else known.url
    download(url, cached, checksums=known.checksums, progress=progress)
    return cached


def cache_folder() -> Path:
    """Folder of the downloaded archives."""
    if "TACITURN_CACHE" in os.environ:
        return Path(os.environ["TACITURN_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "taciturn"


def data_folder() -> Path | None:
    """Folder that TACITURN_DATA names; None if unset. Raises if it is not a folder."""
    named = os.environ.get("TACITURN_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise InvalidDocument(
            f"TACITURN_DATA is {named!r}, which is not a folder; correct or unset it"
        )
    return folder


def _in_data_folder(name: str) -> Path | None:
    folder = data_folder()
    if folder is None or not name:
        return None
    path = folder / name
    return path if path.is_file() else None


def _show_licence_once(known: NamedSet, licence: Callable[[str], None]) -> None:
    marker = cache_folder() / f"{known.name}.licence-shown"
    if marker.exists():
        return
    licence(known.licence)
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError:
        pass  # the cache is not writable, so the licence is shown again next time


def archive_member(known: NamedSet, archive: Path, member: str) -> bytes:
    """Content of a file in the archive of a set, found by the end of its name."""
    try:
        with zipfile.ZipFile(archive) as bundle:
            members = [name for name in bundle.namelist() if name.endswith(f"/{member}")]
            members = members or [name for name in bundle.namelist() if name == member]
            if len(members) != 1:
                raise InvalidDocument(
                    f"{archive} has no {member}; expected the archive of {known.name}"
                )
            return zip_member(bundle, members[0], ExpansionLimit(str(archive)))
    except (OSError, *DAMAGED):
        raise InvalidDocument(f"{archive} is damaged; delete it and download it again") from None


def _read_archive(known: NamedSet, archive: Path) -> pl.DataFrame:
    """Ratings in an archive, with the columns user_id, item_id, rating and timestamp."""
    if known.name == "netflix":
        return read_prize_archive(archive)
    content = archive_member(known, archive, known.member)
    separator = _SEPARATORS.get(known.member)
    header = None if separator is None else False
    file = TableFile(archive, ROLES, separator=separator, header=header, content=content)
    pieces = list(file.pieces(list(file.places), _ARCHIVE_TYPES))
    if not pieces:
        raise InvalidDocument(f"{archive} has no ratings; delete it and download it again")
    table = pl.concat(pieces).rename({"user": "user_id", "item": "item_id"})
    if known.name == "anime":
        table = table.filter(pl.col("rating") != -1)  # watched, not rated
    return table
