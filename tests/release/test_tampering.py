"""Every changed, missing or added file of a release is caught."""

import os
import random
from pathlib import Path

import pytest

from taciturn.accounting.ledger import Status
from taciturn.errors import (
    CheckFailed,
    InvalidDocument,
    TaciturnError,
)
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.sign import read_public_key
from taciturn.release.verify import verify_release
from tests.release.helpers import copy, reseal, write_small

# These releases are copies of a signed one, and loaded without its key.
pytestmark = pytest.mark.filterwarnings("ignore::taciturn.errors.SignatureNotChecked")


@pytest.mark.slow
def test_every_flipped_byte_is_caught(signed: Path, tmp_path: Path) -> None:
    """One random bit of every byte of every file of a small signed release."""
    key = read_public_key(signed / "key.pub")
    release = copy(signed / "release", tmp_path / "r")
    assert verify_release(release, public_key=key).passed
    chance = random.Random(1)  # noqa: S311 — chooses the bit
    flips = 0
    for file in sorted(release.iterdir()):
        whole = file.read_bytes()
        with file.open("r+b") as stream:
            for place in range(len(whole)):
                stream.seek(place)
                stream.write(bytes([whole[place] ^ (1 << chance.randrange(8))]))
                stream.flush()
                verdict = verify_release(release)
                assert not verdict.passed, f"{file.name} byte {place}"
                with pytest.raises(TaciturnError):
                    load_release(release, key)
                stream.seek(place)
                stream.write(whole[place : place + 1])
                flips += 1
            stream.flush()
    assert flips > 5000 and verify_release(release, public_key=key).passed


@pytest.mark.parametrize("name", [bundle.CARD, bundle.ITEMS, bundle.USERS, bundle.SUMS])
def test_a_missing_file_is_caught(signed: Path, tmp_path: Path, name: str) -> None:
    release = copy(signed / "release", tmp_path / "r")
    (release / name).unlink()
    with pytest.raises(CheckFailed):
        load_release(release)
    if name not in bundle.REQUIRED:  # also with recomputed checksums
        reseal(release)
        with pytest.raises(CheckFailed, match="which is missing"):
            load_release(release)


def test_an_added_file_is_caught(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    (release / "more.txt").write_text("hello")
    verdict = verify_release(release)
    assert not verdict.passed and "not part of a release" in verdict.checks[0].detail
    (release / "more.txt").unlink()
    content = (release / bundle.CARD).rename(tmp_path / "elsewhere")
    (release / bundle.CARD).symlink_to(content)
    with pytest.raises(CheckFailed, match="not part of a release"):
        load_release(release)
    (release / bundle.CARD).unlink()
    content.rename(release / bundle.CARD)
    load_release(release)
    (release / "folder").mkdir()
    with pytest.raises(CheckFailed, match="not part of a release"):
        load_release(release)


def test_a_card_with_other_text_passes_only_with_its_checksum(tmp_path: Path) -> None:
    """Verifying does not generate the card: other versions word it differently."""
    write_small(tmp_path / "r")
    (tmp_path / "r" / bundle.CARD).write_text("A card as another version writes it.\n")
    verdict = verify_release(tmp_path / "r")
    assert [c.name for c in verdict.checks if not c.passed] == ["files"]
    reseal(tmp_path / "r")
    assert verify_release(tmp_path / "r").passed
    assert load_release(tmp_path / "r").certificate.status is Status.PROVEN


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    (release / bundle.ITEMS).chmod(0)
    with pytest.raises(InvalidDocument, match="Permission"):
        load_release(release)
