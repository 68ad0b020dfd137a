"""Readers give the same ratings for every format."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from taciturn.data import load
from taciturn.errors import InvalidParameter, TaciturnError
from tests.data.helpers import (
    FRAME,
    ITEMS,
    USERS,
    VALUES,
    as_dict,
    check,
    check_structure,
    check_text,
    text,
)


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", " ", "::"])
@pytest.mark.parametrize("header", [True, False])
def test_text_with_any_separator_is_read(tmp_path: Path, separator: str, header: bool) -> None:
    file = tmp_path / "ratings.txt"
    file.write_text(text(separator, header))
    if header:
        check_text(load(file, scale="1:5"))
    check_text(load(str(file), scale="1:5:1", separator=separator, header=header))


def test_compressed_text_is_read(tmp_path: Path) -> None:
    content = text(",").encode()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(content))
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(content))
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        archive.writestr("a.csv", content)
    (tmp_path / "a.csv.zst").write_bytes(ZSTANDARD)
    for file in tmp_path.iterdir():
        check_text(load(file, scale="1:5"))


# `text(",")` compressed with the zstd command.
ZSTANDARD = bytes.fromhex(
    "28b52ffd046835020012c50e10b0eb242f4950c1d06a952d91560ae41178f5132c1ef8197c60805f"
    "3fd7d7e0a7fa6bc50b3f85af5e5c89b86612723e0a39c29271c8050d66da0b03040141fbcb7b930a"
    "13c4cd"
)


def test_windows_lines_quotes_and_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    quoted = text(",").replace("user_id", '"user_id"').replace("\n", "\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    check_text(load(file, scale="1:5"))


def test_parquet_files_folders_and_globs_are_read(tmp_path: Path) -> None:
    FRAME[:2].write_parquet(tmp_path / "a.parquet")
    (tmp_path / "more").mkdir()
    FRAME[2:].write_parquet(tmp_path / "more" / "b.parquet")
    FRAME.write_parquet(tmp_path / "whole.pq")
    check(load(tmp_path, scale="1:5"))
    check(load(tmp_path / "whole.pq", scale="1:5"))
    check(load(f"{tmp_path}/**/*.parquet", scale="1:5"))


def test_frames_and_arrays_are_read() -> None:
    import pandas as pd
    import pyarrow as pa

    class ArrowOnly:
        """An object with only the Arrow stream interface."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return FRAME.to_arrow().__arrow_c_stream__(requested_schema)

    pandas = pd.DataFrame(FRAME.to_dict(as_series=False))
    for source in (
        FRAME,
        FRAME.lazy(),
        pandas,
        pandas.astype({"user_id": float}),
        pa.table(FRAME.to_dict(as_series=False)),
        ArrowOnly(),
        (USERS, ITEMS, VALUES),
        tuple(np.array(column) for column in (USERS, ITEMS, VALUES)),
        (pl.Series(USERS), np.array(ITEMS, dtype=np.uint8), VALUES),
    ):
        check(load(source, scale="1:5"))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_matrices_are_read(kind: Any) -> None:
    matrix = kind((VALUES, (USERS, ITEMS)), shape=(4, 31))
    check(load(matrix, scale="1:5"))


def test_pandas_text_needs_no_pyarrow() -> None:
    """In a process where pyarrow cannot be imported."""
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas as pd\n"
        "from taciturn.data import load\n"
        "frame = pd.DataFrame({'user': ['b', 'a'], 'item': ['x', 'y'], 'rating': [1, 2]})\n"
        "assert load(frame, scale='1:5').user_ids.to_list() == ['a', 'b']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "names",
    [
        ("userId", "movieId", "rating"),
        ("user_id", "anime_id", "rating"),
        ("User-ID", "ISBN", "Book-Rating"),
        ("customer_id", "movie_id", "stars"),
        ("USER", "ITEM", "SCORE"),
        ("uid", "iid", "r"),
    ],
)
def test_usual_names_are_understood(names: tuple[str, str, str]) -> None:
    columns = {"User-ID": "user"} if names[0] == "User-ID" else {}
    frame = pl.DataFrame(dict(zip(names, (USERS, ITEMS, VALUES), strict=True)))
    chosen = {role: name for name, role in columns.items()} or None
    check(load(frame, scale="1:5", columns=chosen))


def test_columns_can_be_named() -> None:
    frame = FRAME.rename({"user_id": "who", "item_id": "what", "rating": "how"})
    columns = {"user": "who", "item": "what", "rating": "how"}
    check(load(frame, scale="1:5", columns=columns))
    check(load(frame, scale="1:5", columns="user=who, item=what, rating=how"))
    for bad in ("user", "user=", "user=who,user=what", ""):
        with pytest.raises(InvalidParameter):
            load(frame, scale="1:5", columns=bad)
    wrong: tuple[dict[str, str], ...] = (
        {"user": "absent"},
        {"customer": "who"},
        columns | {"user": "what"},
        {},
    )
    for names in wrong:
        with pytest.raises(TaciturnError):
            load(frame, scale="1:5", columns=names)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["b", "a", "ü", "a", "日本"], pl.String),
        ([2**62, -(2**62), 0, 0, 1], pl.Int64),
        ([2**64 - 1, 0, 5, 5, 7], pl.UInt64),
        ([10**9, 0, 5, 5, 7], pl.Int64),
    ],
)
def test_ids_keep_their_type(ids: list[Any], expected: Any) -> None:
    series = pl.Series(ids, dtype=expected)
    ratings = load((series, ITEMS, VALUES), scale="1:5", duplicates="last")
    assert ratings.user_ids.dtype == expected
    assert ratings.user_ids.to_list() == sorted(set(ids))
    assert as_dict(ratings) == dict(zip(zip(ids, ITEMS, strict=True), VALUES, strict=True))
    check_structure(ratings)


def test_ids_are_text_if_only_the_last_is_not_a_number(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    rows = [f"{n},{n % 7},3" for n in range(20_000)] + ["abc,x,3"]
    file.write_text("user,item,rating\n" + "\n".join(rows))
    ratings = load(file, scale="1:5")
    assert ratings.user_ids.dtype == pl.String and len(ratings) == 20_001


@pytest.mark.slow
def test_long_input_is_read_in_pieces() -> None:
    """More rows than one piece, with ids far apart and with text ids."""
    count = 2_500_000
    random = np.random.default_rng(0)
    users, items = random.permutation(count), random.integers(0, 50, count)
    values = random.integers(1, 6, count)
    near = load((users, items, values), scale="1:5:1")
    far = load((users * 10**12, items, values), scale="1:5:1")
    words = load((pl.Series(users).cast(pl.String), items, values), scale="1:5:1")
    assert len(near) == len(far) == len(words) == count
    assert near.by_user.codes.tolist() == far.by_user.codes.tolist()
    assert near.by_item.starts.tolist() == words.by_item.starts.tolist()
    place = int(np.flatnonzero(words.user_ids.to_numpy() == "123456")[0])
    assert words.by_user.codes[place] == near.by_user.codes[123456]
