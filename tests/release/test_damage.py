"""Damaged and forged releases with correct checksums are refused with a clear error."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.errors import (
    CheckFailed,
    InvalidDocument,
)
from taciturn.model.profiles import Floats, Profiles
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.tables import table_bytes
from taciturn.release.verify import verify_release
from taciturn.solvers.catalog import make_solver
from taciturn.training.train import train
from tests.narrow import present
from tests.release.helpers import copy, reseal
from tests.solvers.helpers import BUDGET, random_ratings

# These releases are copies of a signed one, and loaded without its key.
pytestmark = pytest.mark.filterwarnings("ignore::taciturn.errors.SignatureNotChecked")


@pytest.mark.parametrize(
    "change",
    [
        {"users": 7},
        {"items": -1},
        {"items": 10**4299},
        {"factors": 10**4299},
        {"factors": 3},
        {"mean": "3"},
        {"mean": None},
        {"solver": "a\nb"},
        {"settings": 3},
        {"scale": {"low": 5, "high": 1, "step": 1}},
        {"scale": {"low": 1}},
        {"user_ids": "names"},
        {"date": "2026-02-30"},
        {"date": "20260131"},
        {"date": "2026-01-31T00:00"},
        {"date": 20260131},
        {"date": None},
        {"user_ids": "none"},
        {"user_ids": "pseudonyms"},
        {"mean": 1e300},
        {"settings": {"x": float("inf")}},
        {"more": 1},
    ],
)
def test_impossible_facts_are_refused(signed: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    release = copy(signed / "release", tmp_path / "r")
    file = release / bundle.CERTIFICATE
    document = json.loads(file.read_text())
    text = json.dumps(document | {"facts": document["facts"] | change})
    file.write_text(text.replace("Infinity", "1e999"))
    reseal(release)
    with pytest.raises((InvalidDocument, CheckFailed)):
        load_release(release)
    assert not verify_release(release).passed


def changed(numbers: Floats, number: float) -> Floats:
    """The same numbers but for the last one."""
    copied = numbers.copy()
    copied.flat[-1] = number
    return copied


NOT_FINITE = "a number that is not finite or is too large"
LAYOUT = "as a release has it"


@pytest.mark.parametrize(
    ("break_table", "words"),
    [
        (lambda p: replace(p, biases=changed(p.biases, np.nan)), NOT_FINITE),
        (lambda p: replace(p, biases=changed(p.biases, np.inf)), NOT_FINITE),
        (lambda p: replace(p, biases=changed(p.biases, 1e30)), NOT_FINITE),
        (lambda p: replace(p, factors=changed(p.factors, np.nan)), NOT_FINITE),
        (lambda p: replace(p, factors=changed(p.factors, -np.inf)), NOT_FINITE),
        (lambda p: replace(p, factors=changed(p.factors, -1e15)), NOT_FINITE),
        (lambda p: replace(p, ids=p.ids.gather([0, 1, 2, 3, 3])), "missing or duplicate ids"),
        (lambda p: p.take(np.arange(3)), LAYOUT),
        (lambda p: p.take(np.array([0, 1, 2, 3, 4, 4])), LAYOUT),
        (lambda p: replace(p, factors=p.factors[:, :1]), LAYOUT),
        (lambda p: replace(p, bias_variances=p.biases**2, variances=p.factors**2), LAYOUT),
    ],
)
def test_impossible_tables_are_refused(
    signed: Path, tmp_path: Path, break_table: Callable[[Profiles], Profiles], words: str
) -> None:
    release = copy(signed / "release", tmp_path / "r")
    items = load_release(release).model.items
    assert items is not None and len(items) == 5
    (release / bundle.ITEMS).write_bytes(table_bytes(break_table(items), "item_id"))
    reseal(release)
    with pytest.raises(InvalidDocument, match=words):
        load_release(release)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100000, b"NaN"])
def test_a_file_that_is_no_certificate_is_refused(
    signed: Path, tmp_path: Path, content: bytes
) -> None:
    release = copy(signed / "release", tmp_path / "r")
    (release / bundle.CERTIFICATE).write_bytes(content)
    reseal(release)
    with pytest.raises(InvalidDocument):
        load_release(release)


def test_a_path_that_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none", tmp_path / "file", tmp_path / "empty", "a\0b", "x" * 5000):
        with pytest.raises(InvalidDocument):
            load_release(path)


def test_a_release_must_have_profiles(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    for name in (bundle.ITEMS, bundle.USERS):
        (release / name).unlink()
    file = release / bundle.CERTIFICATE
    document = json.loads(file.read_text())
    document["facts"] |= {"users": 0, "items": 0, "user_ids": "none"}
    file.write_text(json.dumps(document))
    reseal(release)
    assert not verify_release(release).passed


def test_files_that_are_far_too_large_are_refused(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    os.truncate(release / bundle.CARD, 2**35)
    with pytest.raises(CheckFailed, match="larger"):
        load_release(release)


def test_a_release_of_a_newer_version_is_refused_by_name(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    file = release / bundle.CERTIFICATE
    document = json.loads(file.read_text())
    for version in (2, 4, "1", True, None, 1.0):
        file.write_text(json.dumps(document | {"version": version}))
        reseal(release)
        with pytest.raises(InvalidDocument, match="use a version of Taciturn that supports it"):
            load_release(release)


def test_a_forged_guarantee_is_refused(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    file = release / bundle.CERTIFICATE
    text = file.read_text()
    file.write_text(text.replace('"status": "proven"', '"status": "claimed"'))
    reseal(release)
    with pytest.raises(CheckFailed, match="does not follow"):
        load_release(release)
    file.write_text(text.replace('"epsilon": 9.99', '"epsilon": 0.99', 1))
    reseal(release)
    with pytest.raises(CheckFailed, match="does not follow"):
        load_release(release)


@pytest.mark.parametrize("change", ["drop", "negative", "facts"])
def test_forged_variances_are_refused(tmp_path: Path, change: str) -> None:
    solver = make_solver("als", unit="value", factors=2, iterations=2, uncertainty=True)
    train(random_ratings(), solver, BUDGET, output=tmp_path / "r")
    items = load_release(tmp_path / "r").model.items
    assert items is not None
    if change == "drop":
        items = replace(items, bias_variances=None, variances=None)
    elif change == "negative":
        items = replace(items, bias_variances=-present(items.bias_variances))
    else:
        document = json.loads((tmp_path / "r" / bundle.CERTIFICATE).read_text())
        del document["facts"]["residual_variance"]
        (tmp_path / "r" / bundle.CERTIFICATE).write_text(json.dumps(document))
    (tmp_path / "r" / bundle.ITEMS).write_bytes(table_bytes(items, "item_id"))
    reseal(tmp_path / "r")
    with pytest.raises(InvalidDocument):
        load_release(tmp_path / "r")
