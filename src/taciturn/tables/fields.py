"""Fields of text tables: missing ones, and blanks around them.

Each rule looks at one field alone, so no row affects how another is read.
"""

import re

import polars as pl

NULLS = ["", "NA", "N/A", "null", "NULL", "None"]
"""Field contents that count as missing."""

_BLANKS = " \t"


def stripped(column: pl.Series) -> pl.Series:
    """Text fields without the blanks around them, and without quotes inside those blanks."""
    is_padded = column.str.starts_with(" ") | column.str.ends_with(" ")
    is_padded |= column.str.starts_with("\t") | column.str.ends_with("\t")
    if not is_padded.any():
        return column
    field, bare = pl.col("field"), pl.col("field").str.strip_chars(_BLANKS)
    inside = bare.str.extract('^"(.*)"$').str.replace_all('""', '"', literal=True)
    bare = pl.when(field != bare).then(pl.coalesce(inside, bare)).otherwise(field)
    found = column.alias("field").to_frame().select(bare)
    return found.select(pl.when(~field.is_in(NULLS)).then(field)).to_series().alias(column.name)


def bare_name(name: str) -> str:
    """Name of a column in a header line, without blanks and quotes around it."""
    name = name.removeprefix("\ufeff").strip()
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1].replace('""', '"').strip()
    return name


def plain_name(name: str) -> str:
    """Name of a column for comparisons: User-ID, user id and USER_ID are the same."""
    return re.sub(r"[-_\s]", "", bare_name(name).lower())
