"""Which column is which: names, aliases, and a map that the caller may give."""

from dataclasses import dataclass

from taciturn.errors import InvalidDocument, InvalidParameter

ROLES = ("user", "item", "rating", "timestamp")

ALIASES = {
    "user": ("user_id", "userid", "user", "customer_id", "customerid", "user id", "uid", "u"),
    "item": (
        *("item_id", "itemid", "item", "movie_id", "movieid", "movie", "anime_id", "book_id"),
        *("product_id", "track_id", "song_id", "isbn", "asin", "iid", "i", "item id"),
    ),
    "rating": ("rating", "ratings", "score", "stars", "value", "book-rating", "overall", "r"),
    "timestamp": ("timestamp", "time", "date", "ts", "unixreviewtime", "datetime"),
}
"""Names that are understood, in any case: MovieLens's, Netflix's, Kaggle's usual ones."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns; `timestamp` may be absent."""

    user: str
    item: str
    rating: str
    timestamp: str | None = None


def parse_columns(text: str) -> dict[str, str]:
    """Return the map written as user=NAME,item=NAME,rating=NAME[,timestamp=NAME]."""
    pairs = [part.partition("=") for part in text.split(",")]
    chosen = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(name for name in chosen.values()) or len(chosen) != len(pairs):
        raise InvalidParameter(f"columns are written user=NAME,item=NAME,rating=NAME, got {text!r}")
    return chosen


def find_columns(
    names: list[str], chosen: dict[str, str] | None = None, *, quote: bool = True
) -> Columns:
    """Return which of `names` plays which role; `chosen` goes before the aliases.

    Errors list the names only with `quote`: the first line of a text file may be somebody's rating.
    """
    if not isinstance(chosen, dict | None):
        raise InvalidParameter("columns must map roles to names, such as {'user': 'reader'}")
    chosen = dict(chosen or {})
    listed = f"the columns are {_listed(names)}" if quote else f"its first line has {len(names)}"
    for role, name in chosen.items():
        if role not in ROLES:
            raise InvalidParameter(f"a column's role is one of {', '.join(ROLES)}, got {role!r}")
        if name not in names:
            raise InvalidDocument(f"there is no column {name!r}; {listed}")
    found = dict(chosen)
    for role in ROLES:
        if role in found:
            continue
        taken = set(found.values())
        by_name = {name.strip().lower(): name for name in names if name not in taken}
        match = next((by_name[alias] for alias in ALIASES[role] if alias in by_name), None)
        if match is not None:
            found[role] = match
        elif role != "timestamp":
            raise InvalidDocument(
                f"no column looks like the {role}; {listed}; name it with columns: {role}=NAME"
            )
    if len(set(found.values())) != len(found):
        raise InvalidParameter("one column cannot play two roles")
    return Columns(**found)


def is_header(fields: list[str]) -> bool:
    """Whether a first line names columns for user, item and rating."""
    names = {field.strip().strip('"').lower() for field in fields}
    return all(names & set(ALIASES[role]) for role in ("user", "item", "rating"))


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown}, …"
