"""Targets that read releases: changed files, forged files with matching checksums, signatures."""

import json
import shutil
from pathlib import Path
from random import Random

import numpy as np
from cryptography.hazmat.primitives import serialization

from taciturn.accounting.ledger import Status
from taciturn.errors import TaciturnError
from taciturn.recommend.serve import Recommender
from taciturn.release import bundle
from taciturn.release.bundle import Release
from taciturn.release.read import load_release
from taciturn.release.sign import read_public_key, signature
from taciturn.release.verify import verify_release
from taciturn.release.write import checksums
from tests.torture.honest import check_certificate
from tests.torture.mutators import json_text, mutate_bytes, mutate_json, mutate_lines
from tests.torture.originals import RELEASES, owner_key, write_original
from tests.torture.target import (
    ACCEPTED,
    UNCHANGED,
    Target,
    outcome,
    refusal,
    require,
)

KEY = owner_key().public_key()
ORDER = list(Status)


class ReleaseTarget(Target):
    """Releases of which one file was mutated, removed, added or exchanged: never accepted."""

    name, share = "release", 100

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name in RELEASES:
            write_original(name, folder / name)
        self.files = {
            name: {file.name: file.read_bytes() for file in (folder / name).iterdir()}
            for name in RELEASES
        }

    def attempt(self, chance: Random) -> str:
        name = chance.choice(list(RELEASES))
        original = self.files[name]
        changed = self.changed(original, chance)
        path = self.folder / name
        self.write(path, changed)
        try:
            return self.read(path, is_unchanged=changed == original)
        finally:
            self.write(path, original)

    def write(self, path: Path, files: dict[str, bytes]) -> None:
        """Let a folder have exactly these files."""
        for file in path.iterdir():
            if file.name not in files:
                file.unlink()
        for name, content in files.items():
            file = path / name
            if not file.exists() or file.read_bytes() != content:
                file.write_bytes(content)

    def changed(self, original: dict[str, bytes], chance: Random) -> dict[str, bytes]:
        """Files of a damaged release."""
        files = dict(original)
        name, other = chance.choice(sorted(files)), chance.choice(sorted(files))
        match chance.randrange(12):
            case 0:
                del files[name]
            case 1:
                files[name], files[other] = files[other], files[name]
            case 2:
                files[chance.choice(("more", ".hidden", "users.parquet", "CARD.md"))] = b"hello"
            case 3:
                files[name] = chance.choice(list(self.files.values())).get(name, b"")
            case 4:
                text = files[bundle.SUMS].decode()
                files[bundle.SUMS] = mutate_lines(text, "  ", chance).encode()
            case _:
                files[name] = mutate_bytes(files[name], list(original.values()), chance)
        return files

    def read(self, path: Path, *, is_unchanged: bool) -> str:
        """Outcome of verifying and loading; with a change, neither may pass."""
        try:
            verdict = verify_release(path, allowed=frozenset(Status), public_key=KEY)
        except TaciturnError as error:
            found = refusal(error)
        else:
            require(verdict.passed == is_unchanged, f"verified: {verdict.passed}")
            failed = [check.name for check in verdict.checks if not check.passed]
            found = UNCHANGED if verdict.passed else f"refused: {failed[0]}"
        loaded = outcome(lambda: use(load_release(path, KEY)))
        require((loaded == ACCEPTED) == is_unchanged, f"loaded: {loaded}, verified: {found}")
        return found


def use(release: Release) -> None:
    """Serve a release; every number must be finite."""
    model = release.model
    if model.items is None:
        return
    serving = Recommender(release, threads=1)
    items = model.items.ids
    if model.users is not None:
        users = model.users.ids.head(2)
        scores = serving.recommend(users, 3)["score"].to_numpy()
        numbers = [scores, serving.predict(users, items.head(len(users)))]
        if serving.has_variances:
            numbers.append(serving.standard_deviations(users, items.head(len(users))))
        require(all(np.isfinite(each).all() for each in numbers), "a score is not finite")
    if model.prior is not None:
        profile = serving.fold_in({items[0]: model.scale.high})
        require(np.isfinite(profile.factors).all(), "a folded-in profile is not finite")
        found = serving.distribution_profile(profile, items[0])
        is_finite = found is None or np.isfinite(found.standard_deviation)
        require(is_finite, "a standard deviation is not finite")
    if model.factor_count:
        serving.similar(items[0], 2)


class ForgedTarget(ReleaseTarget):
    """Releases of which one file was mutated, with matching checksums and without a signature.

    Anybody can write such a release. It may be accepted if it is consistent, but its certificate
    must follow from its ledger and not be better than the original.
    """

    name, share = "forged release", 50

    def changed(self, original: dict[str, bytes], chance: Random) -> dict[str, bytes]:
        """Files of a forged release; its checksums are computed when it is written."""
        files = {name: original[name] for name in original.keys() - {bundle.SIGNATURE}}
        tables = [name for name in files if name.endswith(".parquet")]
        if chance.randrange(2):
            name = chance.choice(sorted(tables))
            files[name] = mutate_bytes(files[name], list(original.values()), chance)
            return files
        name = bundle.CERTIFICATE
        if chance.randrange(4):
            document = mutate_json(json.loads(files[name]), chance)
            files[name] = json_text(document, chance).encode()
        else:
            files[name] = mutate_bytes(files[name], list(original.values()), chance)
        return files

    def read(self, path: Path, *, is_unchanged: bool) -> str:
        """Outcome of verifying, loading and serving a forged release."""
        (path / bundle.SUMS).write_bytes(checksums(path))
        verdict = verify_release(path, allowed=frozenset(Status))
        release = verdict.release
        loaded = outcome(lambda: use(load_release(path)))
        require(verdict.passed == (loaded == ACCEPTED), f"verified: {verdict}, loaded: {loaded}")
        if release is None or not verdict.passed:
            return loaded
        require(
            not verify_release(path, allowed=frozenset(Status), public_key=KEY).passed,
            "a release without a signature passed with a key",
        )
        document = json.loads((path / bundle.CERTIFICATE).read_text(encoding="utf-8"))
        check_certificate(document["certificate"], release.certificate)
        honest = json.loads(self.files[path.name][bundle.CERTIFICATE])["certificate"]["status"]
        require(
            ORDER.index(release.certificate.status) >= ORDER.index(Status(honest)),
            f"{honest} became {release.certificate.status}",
        )
        return loaded


class SignatureTarget(ReleaseTarget):
    """Signature files and public keys: only the original signature and key pass."""

    name, share = "signature", 70

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.public = KEY.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        raw = KEY.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.raw = raw

    def attempt(self, chance: Random) -> str:
        if chance.randrange(2):
            return self.attempt_key(chance)
        return super().attempt(chance)

    def changed(self, original: dict[str, bytes], chance: Random) -> dict[str, bytes]:
        """Files of a release with another signature."""
        files, content = dict(original), original[bundle.SIGNATURE]
        match chance.randrange(6):
            case 0:
                sums = chance.choice(list(self.files.values()))[bundle.SUMS]
                key = owner_key(chance.choice(("owner", "other")))
                files[bundle.SIGNATURE] = signature(key, sums).encode()
            case 1 | 2:
                document = mutate_json(json.loads(content), chance)
                files[bundle.SIGNATURE] = json_text(document, chance).encode()
            case _:
                files[bundle.SIGNATURE] = mutate_bytes(content, list(original.values()), chance)
        return files

    def attempt_key(self, chance: Random) -> str:
        """Outcome of verifying with a mutated key file; another key must not verify."""
        content = mutate_bytes(self.public, [self.public, b"-----BEGIN PRIVATE KEY-----"], chance)
        file = self.folder / "key.pub"
        file.write_bytes(content)
        release = self.folder / "gradient"

        def read() -> None:
            raw = read_public_key(file).public_bytes(
                serialization.Encoding.Raw, serialization.PublicFormat.Raw
            )
            passed = verify_release(release, public_key=file).passed
            require(passed == (raw == self.raw), "another key verified the signature")

        return outcome(read, is_unchanged=content == self.public)


def copy(source: Path, target: Path) -> Path:
    """Fresh copy of a folder, over an earlier one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
