"""Targets that read ratings: text, compressed text and id lists."""

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from taciturn.data import load
from taciturn.data.id_lists import IdLists
from taciturn.data.ratings import Ratings
from tests.data.helpers import as_dict, check_structure
from tests.torture.mutators import mutate_bytes, mutate_lines, odd_field
from tests.torture.target import Target, outcome, require

NAMES = ("user_id", "item_id", "rating", "timestamp")
ROWS = [
    (
        f"u{(7 * row) % 13}" if row % 3 else str(100 + row % 13),
        10 + row,
        1 + row % 9 / 2,
        9**5 + row,
    )
    for row in range(24)
]
"""Original ratings: no pair twice, ratings on the scale 1:5:0.5."""

SCALE = "1:5:0.5"

POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"duplicates": "last", "missing": "drop", "outside": "clip"},
    {"duplicates": "mean", "missing": "drop", "outside": "drop"},
    {"timestamps": True, "duplicates": "last"},
)


def check_ratings(ratings: Ratings) -> None:
    """Raise a finding unless loaded ratings are consistent and on the scale."""
    check_structure(ratings)
    values = ratings.to_frame()["rating"].to_numpy()
    require(len(values) and np.isfinite(values).all(), "a rating is not finite, or there are none")
    require(values.min() >= 1 and values.max() <= 5, "a rating is not on the scale")


def table_text(separator: str, header: bool = True) -> str:
    """Original ratings as text."""
    lines = [separator.join(NAMES)] if header else []
    lines += [separator.join(map(str, row)) for row in ROWS]
    return "\n".join(lines) + "\n"


TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "commas.csv": (",", {}),
    "tabs.tsv": ("\t", {}),
    "semicolons.csv": (";", {}),
    "colons.dat": ("::", {"separator": "::", "header": False}),
    "bare.csv": (",", {"separator": ",", "header": False}),
}


class TextTarget(Target):
    """Text files with five separators, through `load`."""

    name, share = "text", 80

    def attempt(self, chance: Random) -> str:
        name = chance.choice(list(TEXTS))
        separator, options = TEXTS[name]
        original = table_text(separator, options.get("header", True))
        if chance.randrange(3):
            content = mutate_lines(original, separator, chance).encode()
        else:
            others = [table_text(",").encode(), table_text("::", False).encode(), b"PAR1" * 9]
            content = mutate_bytes(original.encode(), others, chance)
        file = self.folder / name
        file.write_bytes(content)
        options = options | chance.choice(POLICIES)
        return outcome(
            lambda: check_ratings(load(file, scale=SCALE, **options)),
            is_unchanged=content == original.encode(),
        )


class RowTarget(Target):
    """One row of a text file replaced: if it loads, all other rows are read as before."""

    name, share = "row", 30

    def attempt(self, chance: Random) -> str:
        separator = chance.choice((",", "\t", "::"))
        header = separator != "::"
        lines = table_text(separator, header).removesuffix("\n").split("\n")
        place = chance.randrange(len(ROWS))
        line = odd_field(lines[place + header], separator, chance)
        lines[place + header] = odd_field(line, separator, chance) if chance.randrange(2) else line
        file = self.folder / f"row.{'csv' if header else 'dat'}"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        expected = {(user, str(item)): rating for user, item, rating, _ in ROWS}
        replaced = (ROWS[place][0], str(ROWS[place][1]))
        options: dict[str, Any] = {} if header else {"separator": separator, "header": False}
        options |= chance.choice(({}, {"missing": "drop"}, {"outside": "clip"}))

        def read() -> None:
            ratings = load(file, scale=SCALE, **options)
            check_ratings(ratings)
            found = as_dict(ratings)
            del expected[replaced]
            lost = [pair for pair, rating in expected.items() if found.get(pair) != rating]
            require(not lost, f"row {place} changed other rows: {lost}")
            require(len(found) <= len(ROWS), f"row {place} was read as several")

        return outcome(read)


def zipped(content: bytes) -> bytes:
    """Zip archive with one file, the same bytes every time."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("ratings.csv"), content)
    return stream.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
    "zip": zipped,
}


class CompressedTarget(Target):
    """Compressed text: the text is mutated before it is packed, or the packed bytes are."""

    name, share = "compressed", 100

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.packed = {kind: pack(table_text(",").encode()) for kind, pack in PACKERS.items()}
        self.others = {kind: pack(b"a,b\n" * 9) for kind, pack in PACKERS.items()}

    def attempt(self, chance: Random) -> str:
        kind = chance.choice(list(PACKERS))
        original, packed = table_text(","), self.packed[kind]
        if chance.randrange(3) == 0:
            content = PACKERS[kind](mutate_lines(original, ",", chance).encode())
        else:
            others = [packed, original.encode(), self.others[chance.choice(list(PACKERS))]]
            content = mutate_bytes(packed, others, chance)
        file = self.folder / f"ratings.csv.{kind}"
        file.write_bytes(content)
        options = chance.choice(POLICIES)
        return outcome(
            lambda: check_ratings(load(file, scale=SCALE, **options)),
            is_unchanged=content == packed,
        )


class IdListTarget(Target):
    """Public id lists of users and items, as text and as Parquet."""

    name, share = "id list", 50

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        text = pl.DataFrame(ROWS, schema=list(NAMES), orient="row").with_columns(
            pl.col("item_id").cast(pl.String)
        )
        self.ratings = load(text, scale=SCALE)
        self.lists = {"user": text["user_id"].unique().sort(), "item": text["item_id"]}

    def attempt(self, chance: Random) -> str:
        role = chance.choice(("user", "item"))
        frame = pl.DataFrame({f"{role}_id": pl.concat([self.lists[role], pl.Series(["9", "x9"])])})
        if chance.randrange(3):
            text = frame.write_csv()
            content = mutate_lines(text, ",", chance).encode()
            file = self.folder / f"{role}s.csv"
        else:
            stream = io.BytesIO()
            frame.write_parquet(stream, compression="uncompressed")
            content = mutate_bytes(stream.getvalue(), [stream.getvalue()], chance)
            file = self.folder / f"{role}s.parquet"
        file.write_bytes(content)

        def read() -> None:
            extended = IdLists(**{f"{role}s": file}).extend(self.ratings)
            check_ratings(extended)
            require(len(extended) == len(self.ratings), "an id list changed the ratings")

        return outcome(read)
