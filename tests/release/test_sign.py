"""Signing keys and signatures of releases."""

import base64
import warnings
from pathlib import Path
from typing import Any

import pytest

import taciturn
from taciturn.errors import (
    CheckFailed,
    InvalidDocument,
    InvalidParameter,
    OutputError,
    SignatureNotChecked,
)
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.sign import make_keys, read_private_key, read_public_key
from taciturn.release.verify import verify_release
from tests.conftest import Command
from tests.failures import fail_link
from tests.release.helpers import copy, reseal, write_small


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


def test_a_release_is_loaded_with_the_key_that_signed_it(signed: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "other")
    public = signed / "key.pub"
    for key in (public, str(public), read_public_key(public)):
        assert load_release(signed / "release", public_key=key).model.items is not None
        assert verify_release(signed / "release", public_key=key).passed
    with pytest.raises(CheckFailed, match="a different key"):
        load_release(signed / "release", public_key=tmp_path / "other.pub")
    with pytest.raises(InvalidDocument, match="cannot read"):
        load_release(signed / "release", public_key=tmp_path / "none.pub")
    wrong: Any = read_private_key(signed / "key")
    with pytest.raises(InvalidParameter, match="public_key must be"):
        load_release(signed / "release", public_key=wrong)


def test_a_forged_release_is_not_loaded_with_the_key(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    (release / bundle.CARD).write_text("trust me")
    reseal(release)
    with pytest.raises(CheckFailed, match="does not match the files"):
        load_release(release, public_key=signed / "key.pub")
    (release / bundle.SIGNATURE).unlink()
    with pytest.raises(CheckFailed, match="is not signed"):
        load_release(release, public_key=signed / "key.pub")


def test_loading_without_the_key_warns_that_the_signature_was_not_checked(
    signed: Path, tmp_path: Path
) -> None:
    assert taciturn.SignatureNotChecked is SignatureNotChecked
    with pytest.warns(SignatureNotChecked, match="was not checked; pass .* public_key=") as caught:
        load_release(signed / "release")
    assert caught[0].filename == __file__
    write_small(tmp_path / "plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_release(tmp_path / "plain")  # there is no signature to check
        load_release(signed / "release", signed / "key.pub")


@pytest.mark.parametrize(
    "arguments",
    [
        ("recommend", "release", "--user", "1"),
        ("predict", "release", "--user", "1", "--item", "100"),
        ("similar", "release", "--item", "100"),
        ("export", "release", "--to", "npz", "-o", "release.npz"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_commands_check_the_signature_or_say_that_they_did_not(
    taciturn: Command, signed: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    copy(signed / "release", tmp_path / "release")
    make_keys(tmp_path / "other")
    wrong = taciturn(*arguments, "--public-key", "other.pub", cwd=tmp_path)
    assert wrong.returncode == 1 and "a different key" in wrong.stderr
    checked = taciturn(*arguments, "--public-key", signed / "key.pub", cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    (tmp_path / "release.npz").unlink(missing_ok=True)
    unchecked = taciturn(*arguments, cwd=tmp_path)
    (line,) = unchecked.stderr.splitlines()
    assert unchecked.returncode == 0 and unchecked.stdout == checked.stdout
    assert line.startswith("warning: the signature of release was not checked; pass")
    assert "--public-key FILE" in line


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


def test_keys_of_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    """The identifier of the algorithm, 1.3.101.112, is changed to 1.3.69.112."""
    for file, read in zip(
        make_keys(tmp_path / "k"), (read_private_key, read_public_key), strict=True
    ):
        first, *body, last = file.read_text().splitlines()
        content = base64.b64decode("".join(body)).replace(b"\x2b\x65\x70", b"\x2b\x45\x70")
        file.write_text("\n".join([first, base64.b64encode(content).decode(), last, ""]))
        with pytest.raises(InvalidDocument, match="PEM"):
            read(file)


def test_no_private_key_is_left_without_its_public_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_link(monkeypatch, "k.pub")
    with pytest.raises(OutputError, match="No space left"):
        make_keys(tmp_path / "k")
    assert not list(tmp_path.iterdir())
