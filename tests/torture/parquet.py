"""Targets that read ratings in Parquet files, which polars and pyarrow wrote."""

import io
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow.parquet

from taciturn.data import load
from tests.torture.mutators import mutate_bytes
from tests.torture.ratings import NAMES, POLICIES, ROWS, SCALE, check_ratings
from tests.torture.target import Target, outcome


def frames() -> list[pl.DataFrame]:
    """Original ratings with text and with integer ids."""
    text = pl.DataFrame(ROWS, schema=list(NAMES), orient="row")
    return [text, text.with_columns(user_id=pl.int_range(0, len(ROWS)))]


def polars_files() -> list[bytes]:
    """Parquet files as polars writes them: several codecs and row groups."""
    found = []
    for frame in frames():
        for codec in ("uncompressed", "snappy", "gzip", "lz4", "zstd"):
            for rows in (None, 5):
                stream = io.BytesIO()
                frame.write_parquet(stream, compression=codec, row_group_size=rows)
                found.append(stream.getvalue())
    return found


ENCODINGS: tuple[dict[str, Any], ...] = (
    {"use_dictionary": False},
    {"use_dictionary": True},
    {"data_page_version": "2.0", "compression": "none"},
    {"data_page_size": 16, "write_page_index": True},
    {"use_dictionary": False, "use_byte_stream_split": ["rating"]},
    {
        "use_dictionary": False,
        "column_encoding": {
            "user_id": "PLAIN",
            "item_id": "DELTA_BINARY_PACKED",
            "rating": "PLAIN",
            "timestamp": "DELTA_BINARY_PACKED",
        },
    },
)


def pyarrow_files() -> list[bytes]:
    """Parquet files as pyarrow writes them: several encodings, page versions and codecs."""
    found = []
    for frame in frames():
        for options in ENCODINGS:
            for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
                stream = io.BytesIO()
                facts = {"compression": codec} | options
                pyarrow.parquet.write_table(frame.to_arrow(), stream, **facts)
                found.append(stream.getvalue())
    return found


class ParquetTarget(Target):
    """Parquet files as polars writes them, through `load`."""

    name, share = "Parquet by polars", 170

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.originals = self.make()

    @staticmethod
    def make() -> list[bytes]:
        """Original files."""
        return polars_files()

    def attempt(self, chance: Random) -> str:
        original = chance.choice(self.originals)
        content = mutate_bytes(original, self.originals, chance)
        file = self.folder / f"ratings{chance.choice(('.parquet', '.pq', ''))}"
        file.write_bytes(content)
        options = chance.choice(POLICIES)
        return outcome(
            lambda: check_ratings(load(file, scale=SCALE, **options)),
            is_unchanged=content == original,
        )


class PyarrowTarget(ParquetTarget):
    """Parquet files as pyarrow writes them, through `load`."""

    name, share = "Parquet by pyarrow", 190

    @staticmethod
    def make() -> list[bytes]:
        """Original files."""
        return pyarrow_files()
