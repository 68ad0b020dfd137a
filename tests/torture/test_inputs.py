"""Mutated inputs are refused with a clear error, or accepted without harm: the short form."""

import json
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from taciturn._internal.encode import parquet_bytes
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger
from taciturn.config_file import Key, Value, config_text
from taciturn.release.bundle import CERTIFICATE, SIGNATURE
from taciturn.release.pseudonyms import make_pseudonyms
from taciturn.tables.whole import read_table
from tests.torture.catalog import FAULTS, INPUTS, TARGETS
from tests.torture.documents import CertificateTarget, ComposeTarget
from tests.torture.mutators import mutate_bytes, mutate_json, mutate_lines
from tests.torture.owner_files import ConfigurationTarget, check_map
from tests.torture.parquet import ParquetTarget, PyarrowTarget
from tests.torture.ratings import RowTarget, TextTarget, table_text
from tests.torture.releases import ForgedTarget, ReleaseTarget
from tests.torture.run_folders import RunFolderTarget
from tests.torture.target import Finding, Target, chance_for, outcome
from tests.torture.workers import Chunk, Result, tried, try_inputs

SEED = 0
COUNT = 150
READ_BY_POLARS = (ParquetTarget, PyarrowTarget)
"""Targets whose inputs can abort the process."""

IN_PROCESS = [
    target for name, target in TARGETS.items() if target not in READ_BY_POLARS and name != FAULTS
]
SLOW = {RunFolderTarget, TextTarget, RowTarget, ForgedTarget, ComposeTarget}


def parameters() -> list[object]:
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each in SLOW else [])
        for each in IN_PROCESS
    ]


def results(target: type[Target], folder: Path, count: int) -> list[Result]:
    built = target(folder)
    return [tried(built, SEED, index) for index in range(count)]


@pytest.mark.parametrize("target", parameters())
def test_mutated_inputs_are_refused_or_harmless(target: type[Target], tmp_path: Path) -> None:
    count = COUNT if target is not RunFolderTarget else 50  # each one resumes a training
    found = results(target, tmp_path, count)
    assert [result.finding for result in found if result.finding] == []
    kinds = Counter(result.outcome.split(":")[0] for result in found)
    assert 15 <= kinds["refused"] < count


@pytest.mark.slow
def test_mutated_parquet_files_are_refused_or_harmless() -> None:
    found: list[Result] = []
    with patch.dict("os.environ"):
        try_inputs(iter([Chunk(each, 0, 300) for each in READ_BY_POLARS]), SEED, 1, found.append)
    assert [result.finding for result in found if result.finding] == []
    assert len(found) == 600


def test_shares_of_all_targets_add_up() -> None:
    assert sum(target.share for target in TARGETS.values()) == INPUTS


def test_an_input_is_repeated_by_its_seed_and_index() -> None:
    text = table_text(",")
    document = {"a": [1, 2.5, "x"], "b": {"c": None}}

    def made(seed: int, index: int) -> tuple[bytes, str, object]:
        chance = chance_for("text", seed, index)
        mutated = mutate_bytes(text.encode(), [b"other"], chance)
        return mutated, mutate_lines(text, ",", chance), repr(mutate_json(document, chance))

    assert made(1, 2) == made(1, 2)
    assert len({made(1, index) for index in range(50)} | {made(2, 0)}) == 51


def stated_findings(target: type[Target], folder: Path, count: int = 150) -> str:
    return "\n".join(result.finding or "" for result in results(target, folder, count))


def test_a_certificate_that_is_not_compared_is_found(tmp_path: Path) -> None:
    with patch("taciturn.accounting.certificate._compare"):
        assert "the stated epsilon is too small" in stated_findings(CertificateTarget, tmp_path)


def test_an_event_that_is_ignored_is_found(tmp_path: Path) -> None:
    with patch("taciturn.release.compose.combine", lambda ledgers: list(ledgers)[-1]):
        assert "the composed mu is understated" in stated_findings(ComposeTarget, tmp_path)


def test_a_map_of_pseudonyms_that_is_not_checked_is_found(tmp_path: Path) -> None:
    twice = make_pseudonyms(pl.Series(["a", "b", "a"]), b"secret")
    (tmp_path / "map").write_bytes(parquet_bytes(twice))
    assert outcome(lambda: check_map(tmp_path / "map")) == "refused: InvalidDocument"
    with (
        patch("tests.torture.owner_files.read_pseudonyms", read_table),
        pytest.raises(Finding, match="user_id is not unique"),
    ):
        check_map(tmp_path / "map")


def test_a_configuration_that_loses_a_value_is_found(tmp_path: Path) -> None:
    def lossy(keys: list[Key], values: dict[str, Value]) -> str:
        return config_text(keys, dict(list(values.items())[1:]))

    with patch("tests.torture.owner_files.config_text", lossy):
        assert "changed when written" in stated_findings(ConfigurationTarget, tmp_path)


def test_checksums_that_are_not_compared_are_found(tmp_path: Path) -> None:
    def unchecked(*arguments: object) -> str:
        return "not checked"

    with (
        patch("taciturn.release.read.check_sums", unchecked),
        patch("taciturn.release.verify.check_sums", unchecked),
    ):
        assert "verified: True" in stated_findings(ReleaseTarget, tmp_path)


def test_a_status_that_no_solver_check_protects_is_found(tmp_path: Path) -> None:
    """The flaw is removed from all events of a release that is only claimed."""
    target, path = ForgedTarget(tmp_path), tmp_path / "paper"
    document = json.loads((path / CERTIFICATE).read_text())
    events = document["certificate"]["ledger"]["events"]
    assert all(event.pop("flaw") for event in events if "noise" in event)
    ledger = Ledger.from_dict(document["certificate"]["ledger"])
    document["certificate"] = Certificate.from_ledger(ledger, 1e-5).to_dict()
    (path / CERTIFICATE).write_text(json.dumps(document))
    (path / SIGNATURE).unlink()
    assert target.read(path, is_unchanged=False) == "refused: InvalidDocument"
    with (
        patch("taciturn.solvers.entry.Entry.check_ledger"),
        pytest.raises(Finding, match="claimed became proven"),
    ):
        target.read(path, is_unchanged=False)


def test_a_forged_scale_is_harmless(tmp_path: Path) -> None:
    """Its owner may have declared it, and no number of the certificate depends on it."""
    target, path = ForgedTarget(tmp_path), tmp_path / "user"
    document = json.loads((path / CERTIFICATE).read_text())
    document["facts"]["scale"]["high"] = 2
    (path / CERTIFICATE).write_text(json.dumps(document))
    (path / SIGNATURE).unlink()
    assert target.read(path, is_unchanged=False) == "accepted"
