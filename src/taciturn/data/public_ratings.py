"""Public ratings: another dataset on the same items, which its owner has published.

They are read like any ratings. Only their item ids are matched with those of private ratings: user
ids of two datasets may coincide without belonging to one person.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn._internal import validate
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import match_rows
from taciturn._internal.spelling import option
from taciturn.data.download import Progress, file_digest
from taciturn.data.item_features import IN_MEMORY, plain_source
from taciturn.data.named import is_named, load_named, locate, might_be_file
from taciturn.data.options import ReadingOptions
from taciturn.data.ratings import PublicRatings, Ratings, check_ratings
from taciturn.data.readers import read_ratings
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.frames import is_path
from taciturn.tables.opening import Explained, checked_path

_APART = 1 / 8
"""Maximum distance between the ends of two scales that count as one, relative to their width."""


@dataclass(frozen=True)
class GivenPublicRatings:
    """Public ratings as given on the command line, checked when built and read later.

    Attributes
    ----------
    given
        Path of a file, or name of a set.
    ratings
        Source of the private ratings, which must be another one.
    """

    given: str
    ratings: object

    def __post_init__(self) -> None:
        if not is_named(self.given) and not might_be_file(self.given):
            raise InvalidDocument(
                f"there is no file and no named set {self.given!r}; check "
                f"{option('public_ratings')}, or run: taciturn data list"
            )
        if _is_one_source(self.given, str(self.ratings)):
            raise InvalidParameter(
                f"{option('public_ratings')} is the source of the ratings themselves, and nothing "
                "protects public ratings; pass ratings of other users that are published already"
            )

    def join(self, ratings: Ratings, licence: Callable[[str], None] | None = None) -> Ratings:
        """The ratings with the public ones. A file is read on the scale of the ratings."""
        named = is_named(self.given)
        options = ReadingOptions.of(scale=None if named else ratings.scale)
        try:
            public = read_public_ratings(self.given, options, licence=licence)
        except InvalidDocument as error:
            problem, _, advice = str(error).partition("; ")
            if named or "--" not in advice:
                raise
            # The advice is about options that apply to the private ratings only.
            raise InvalidDocument(
                f"cannot read public ratings from {Path(self.given).name}: {problem}; correct the "
                "file, since reading options apply to the private ratings only"
            ) from None
        return with_public_ratings(ratings, public)


def read_public_ratings(
    source: object,
    options: ReadingOptions,
    *,
    progress: Progress = lambda done, total: None,
    licence: Callable[[str], None] | None = None,
) -> PublicRatings:
    """Read public ratings from a named set, a file or a table in memory."""
    check_fork()
    if is_named(source):
        ratings = load_named(str(source), options, progress=progress, licence=licence)
        name = str(source).partition(":")[0]
        if name == "synthetic":
            return PublicRatings(ratings=ratings, source=str(source), digest=ratings.digest())
        # Reading the ratings compared the archive with its checksum.
        path = locate(str(source), check=False)
        return _from_file(ratings, str(source), path)
    if is_path(source):
        path = Path(_one_file(checked_path(source)))
        return _from_file(read_ratings(path, options), path.name, path)
    ratings = read_ratings(source, options)
    return PublicRatings(ratings=ratings, source=IN_MEMORY, digest=ratings.digest())


def with_public_ratings(ratings: Ratings, public: PublicRatings) -> Ratings:
    """The ratings with public ratings of the same items, to which item rows then shrink.

    Items are matched by id: a whole number and its plain decimal text are the same id. Items that
    only the public ratings have are ignored, and their users stay apart, whatever their ids. Public
    ratings that the ratings had before are replaced.
    """
    check_fork()
    check_ratings(ratings)
    hint = "build them with taciturn.load_public_ratings"
    validate.instance("public", public, PublicRatings, hint)
    if not are_alike(ratings.scale, public.ratings.scale):
        raise InvalidParameter(
            f"the public ratings are on the scale {public.ratings.scale}, and the ratings on "
            f"{ratings.scale}; convert the public ratings to the scale of the ratings first"
        )
    if not (shared_items(ratings, public) >= 0).any():
        raise InvalidDocument(
            f"no item of the ratings is rated in {public.source}; check that both use the same "
            "item ids"
        )
    return replace(ratings, public_ratings=public)


def shared_items(ratings: Ratings, public: PublicRatings) -> Any:
    """Row of each item in the public ratings; −1 if they have no rating of it."""
    rows = match_rows(ratings.item_ids, public.ratings.item_ids)
    counts = np.append(np.diff(public.ratings.by_item.starts), 0)
    return np.where(counts[rows] > 0, rows, -1)


def are_alike(scale: Scale, other: Scale) -> bool:
    """Whether both ends of two scales nearly agree, as those of 1:5 and 0.5:5 do."""
    apart = max(abs(scale.low - other.low), abs(scale.high - other.high))
    return apart <= _APART * max(scale.range, other.range)


def without_users_of(ratings: Ratings, public: PublicRatings) -> np.ndarray:
    """Which ratings are of users whose id the public ratings do not have. Reads private data."""
    alike = ratings.user_ids.dtype.is_integer() == public.ratings.user_ids.dtype.is_integer()
    if not alike:
        raise InvalidParameter(
            f"user ids are whole numbers in one dataset and text in the other; leave out "
            f"{option('same_users', True)}"
        )
    outside: np.ndarray = match_rows(ratings.user_ids, public.ratings.user_ids) < 0
    return outside[ratings.rows()]


def _is_one_source(given: str, other: str) -> bool:
    """Whether two sources are one named set, in any variants, or one file."""
    if is_named(given) and is_named(other):
        synthetic = given.startswith("synthetic:")
        return given == other if synthetic else given.partition(":")[0] == other.partition(":")[0]
    try:
        return Path(given).samefile(other)
    except (OSError, ValueError):
        return False


def _from_file(ratings: Ratings, source: str, path: Path) -> PublicRatings:
    with Explained(str(path)):
        digest = file_digest(path, "sha256")
    return PublicRatings(ratings=ratings, source=plain_source(source), digest=digest)


def _one_file(path: str) -> str:
    """Path of a file; raises for a folder, a glob or a URL, whose bytes have no single SHA-256."""
    if "://" in path or not Path(path).is_file():
        raise InvalidDocument(f"public ratings must be one local file or a named set, got {path!r}")
    return path
