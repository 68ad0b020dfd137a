"""Dates of releases, against replay of an older signed one."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import InvalidParameter
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.sign import make_keys, read_private_key
from taciturn.release.verify import verify_release
from tests.conftest import Command
from tests.release.helpers import write_small

DAY = date(2026, 1, 31)


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a signed release of a known date, and its keys."""
    folder = tmp_path_factory.mktemp("dated")
    private, _ = make_keys(folder / "key")
    write_small(folder / "release", key=read_private_key(private), date=DAY)
    return folder


def test_a_release_carries_the_day_of_its_training(dated: Path, tmp_path: Path) -> None:
    assert load_release(dated / "release", dated / "key.pub").facts.date == DAY
    document = json.loads((dated / "release" / bundle.CERTIFICATE).read_text())
    assert document["facts"]["date"] == "2026-01-31"
    assert "| trained | 2026-01-31 (UTC)" in (dated / "release" / bundle.CARD).read_text()
    before = datetime.now(UTC).date()
    write_small(tmp_path / "today")
    assert before <= load_release(tmp_path / "today").facts.date <= datetime.now(UTC).date()


def test_an_older_release_fails_the_check_of_its_date(dated: Path) -> None:
    key = dated / "key.pub"
    for day in (date(2025, 12, 31), DAY):
        verdict = verify_release(dated / "release", public_key=key, not_before=day)
        assert verdict.passed and verdict.checks[-1].name == "date" and not verdict.warnings
    verdict = verify_release(dated / "release", public_key=key, not_before=date(2026, 2, 1))
    assert [check.name for check in verdict.checks if not check.passed] == ["date"]
    assert verdict.checks[-1].detail == "the release is dated 2026-01-31, before 2026-02-01"
    without = verify_release(dated / "release", public_key=key)
    assert "date" not in [check.name for check in without.checks]


def test_a_date_that_anyone_can_change_is_warned_about(dated: Path) -> None:
    verdict = verify_release(dated / "release", not_before=DAY)
    assert verdict.passed and "only with a public key" in verdict.warnings[0]


def test_verify_refuses_a_replayed_release(taciturn: Command, dated: Path) -> None:
    verify = "verify", dated / "release", "--public-key", dated / "key.pub"
    assert json.loads(taciturn(*verify, "--json").stdout)["date"] == "2026-01-31"
    assert taciturn(*verify, "--not-before", "2026-01-31").returncode == 0
    old = taciturn(*verify, "--not-before", "2026-02-01", "--json")
    assert old.returncode == 1 and "failed verification: date" in old.stderr
    (check,) = [each for each in json.loads(old.stdout)["checks"] if each["name"] == "date"]
    assert check["passed"] is False


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "31.1.2026", "20260131", "2026-W05-6"])
def test_a_date_in_another_form_is_a_usage_error(taciturn: Command, dated: Path, text: str) -> None:
    result = taciturn("verify", dated / "release", "--not-before", text)
    assert result.returncode == 2 and "YYYY-MM-DD, such as 2026-01-31" in result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1


def test_dates_from_python_are_days(dated: Path, tmp_path: Path) -> None:
    moment: Any = datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(InvalidParameter, match="YYYY-MM-DD"):
        verify_release(dated / "release", not_before=moment)
    with pytest.raises(InvalidParameter, match="YYYY-MM-DD"):
        write_small(tmp_path / "r", date=moment)
    assert not (tmp_path / "r").exists()
