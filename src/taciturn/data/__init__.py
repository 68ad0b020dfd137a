"""Ratings and every way in: readers, named sets, splits, synthetic data."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taciturn.data.ratings import Ratings
    from taciturn.scale import Scale


def load(
    source: object,
    *,
    scale: "Scale | str | None" = None,
    columns: dict[str, str] | str | None = None,
    timestamps: bool = False,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
    licence: Callable[[str], None] | None = None,
    **options: Any,
) -> "Ratings":
    """Return the ratings of a named set, a file or data in memory. Reads private data.

    A named set (ml-1m, netflix:paper, synthetic:100k, …) brings its own scale and is downloaded if
    need be; for everything else the scale must be declared. `options` are those of `read_ratings`.
    """
    from taciturn.data import named
    from taciturn.data.options import parse_columns
    from taciturn.data.readers import read_ratings
    from taciturn.errors import InvalidDocument

    if named.is_named(source):
        given = {"scale": scale, "columns": columns} | options
        given = {name: option for name, option in given.items() if option is not None}
        return named.load_named(
            str(source), timestamps=timestamps, progress=progress, licence=licence, **given
        )
    if isinstance(source, str) and not named.might_be_file(source):
        raise InvalidDocument(
            f"there is no file and no named set {source!r}; see taciturn data list"
        )
    chosen = parse_columns(columns) if isinstance(columns, str) else columns
    return read_ratings(source, scale=scale, columns=chosen, timestamps=timestamps, **options)
