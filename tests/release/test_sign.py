"""Signing keys and signatures of releases."""

from pathlib import Path

import pytest

from taciturn.errors import (
    InvalidDocument,
    OutputError,
)
from taciturn.release import bundle
from taciturn.release.sign import make_keys, read_private_key, read_public_key
from taciturn.release.verify import verify_release
from tests.failures import fail_link
from tests.release.helpers import copy, reseal


def test_a_signature_is_valid_for_one_key_and_unchanged_files(signed: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "other")
    other, own = read_public_key(tmp_path / "other.pub"), read_public_key(signed / "key.pub")
    verdict = verify_release(signed / "release", public_key=other)
    assert not verdict.passed and "a different key" in verdict.checks[2].detail
    release = copy(signed / "release", tmp_path / "r")
    (release / bundle.SIGNATURE).unlink()
    assert verify_release(release).passed
    assert not verify_release(release, public_key=own).passed
    # A forger who recomputes the checksums cannot sign them.
    release = copy(signed / "release", tmp_path / "forged")
    (release / bundle.CARD).write_text("trust me")
    reseal(release)
    verdict = verify_release(release)
    assert [c.name for c in verdict.checks if not c.passed] == ["signature"]


def test_keys_are_private_and_not_overwritten(tmp_path: Path) -> None:
    private, public = make_keys(tmp_path / "k")
    assert private.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OutputError, match="exists already"):
        make_keys(tmp_path / "k")
    for read, wrong in ((read_private_key, public), (read_public_key, private)):
        with pytest.raises(InvalidDocument, match="PEM"):
            read(wrong)
        with pytest.raises(InvalidDocument, match="cannot read"):
            read(tmp_path / "none")
    with pytest.raises(OutputError, match="no does not exist; make it first"):
        make_keys(tmp_path / "no" / "k")


def test_no_private_key_is_left_without_its_public_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_link(monkeypatch, "k.pub")
    with pytest.raises(OutputError, match="No space left"):
        make_keys(tmp_path / "k")
    assert not list(tmp_path.iterdir())
