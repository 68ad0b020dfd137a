"""The cell cache: results are found by their facts, and only if they are complete."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from taciturn._internal.cell_cache import CellCache, cell_key
from taciturn.errors import InvalidParameter, OutputError

FACTS: dict[str, Any] = {"version": 1, "seed": 3, "settings": {"factors": 2, "step": 0.1}}


def rmse(document: Any) -> float:
    return float(document["rmse"])


def test_a_result_is_found_by_its_facts(tmp_path: Path) -> None:
    cache = CellCache(tmp_path / "a" / "cells")
    assert cache.get(FACTS, rmse) is None
    cache.put(FACTS, {"rmse": 0.5})
    assert cache.get(FACTS, rmse) == 0.5
    assert CellCache(tmp_path / "a" / "cells").get(dict(reversed(FACTS.items())), rmse) == 0.5
    for other in ({"seed": 4}, {"settings": {"factors": 2}}, {"more": None}):
        assert cache.get(FACTS | other, rmse) is None


def test_the_key_depends_on_every_bit_of_a_number() -> None:
    keys = {cell_key({"epsilon": value}) for value in (0.1, 0.1 + 2**-56, 1, 1.5, "1", None, True)}
    assert len(keys) == 7
    assert cell_key({"a": 1, "b": (1, 2)}) == cell_key({"b": [1, 2], "a": 1})


def test_a_newer_result_replaces_an_older_one(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    for value in (0.5, 0.25):
        cache.put(FACTS, {"rmse": value})
        assert cache.get(FACTS, rmse) == value
    assert [file.name for file in tmp_path.iterdir()] == [f"{cell_key(FACTS)}.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"3", b"null", b"\xff", b'{"rmse": 1}', b'{"key": "other"}'],
)
def test_unreadable_content_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    cache = CellCache(tmp_path)
    cache.put(FACTS, {"rmse": 0.5})
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert cache.get(FACTS, rmse) is None
    cache.put(FACTS, {"rmse": 0.5})
    assert cache.get(FACTS, rmse) == 0.5


def test_the_result_of_another_cell_counts_as_absent(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    cache.put(FACTS | {"seed": 4}, {"rmse": 0.5})
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / f"{cell_key(FACTS)}.json")
    assert cache.get(FACTS, rmse) is None


@pytest.mark.parametrize(
    "document", [{}, {"rmse": None}, {"rmse": "x"}, {"rmse": float("nan")}, [], None, 3]
)
def test_a_result_that_does_not_parse_counts_as_absent(tmp_path: Path, document: object) -> None:
    cache = CellCache(tmp_path)
    cache.put(FACTS, document)
    assert cache.get(FACTS, rmse) is None


def test_a_parser_may_refuse_a_result(tmp_path: Path) -> None:
    def refuse(document: Any) -> float:
        raise InvalidParameter("out of range")

    cache = CellCache(tmp_path)
    cache.put(FACTS, {"rmse": 0.5})
    assert cache.get(FACTS, lambda document: None) is None
    assert cache.get(FACTS, refuse) is None


def test_a_folder_instead_of_a_result_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / f"{cell_key(FACTS)}.json").mkdir()
    cache = CellCache(tmp_path)
    assert cache.get(FACTS, rmse) is None
    with pytest.raises(OutputError, match="a folder is there"):
        cache.put(FACTS, {"rmse": 0.5})


@pytest.mark.parametrize("is_private", [False, True])
def test_private_results_are_readable_by_their_owner_only(tmp_path: Path, is_private: bool) -> None:
    CellCache(tmp_path, is_private=is_private).put(FACTS, {"rmse": 0.5})
    (file,) = tmp_path.iterdir()
    others = stat.S_IMODE(file.stat().st_mode) & 0o077
    assert (others == 0) is is_private


def test_cached_floats_are_exact(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    values = [0.1 + 2**-56, 1e-300, -0.0]
    cache.put(FACTS, values)
    assert cache.get(FACTS, lambda found: json.dumps(found)) == json.dumps(values)


def test_a_file_instead_of_the_folder_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="it is a file"):
        CellCache(tmp_path / "file")
