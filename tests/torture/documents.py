"""Targets that read certificates and ledgers: by themselves, composed, and through the command."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import mpmath

from taciturn.accounting.certificate import Certificate, read_ledger
from taciturn.accounting.events import ExactRelease, Noise, PatternRelease
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.release import bundle
from taciturn.release.compose import compose_releases
from tests import commands
from tests.accounting.test_ledger import ITEMS, USERS
from tests.torture.honest import check_certificate, check_ledger, squared_mu
from tests.torture.mutators import json_text, mutate_bytes, mutate_json, mutate_lines
from tests.torture.originals import RELEASES, write_original
from tests.torture.target import Target, outcome, require

DELTA = 1e-5


def ledgers() -> list[Ledger]:
    """Ledgers of every status, besides those of the original releases."""
    pattern = PatternRelease(purpose="rating counts", unit=Unit.VALUE)
    exact = ExactRelease(purpose="exact sums", unit=Unit.VALUE)
    flawed = replace(ITEMS, flaw="the proof has a gap")
    levels = replace(ITEMS, sensitivity_by_level=(("usual", ITEMS.sensitivity),))
    steps: list[list[Any]] = [
        [ITEMS],
        [pattern, ITEMS, USERS, levels],
        [ITEMS, flawed],
        [replace(ITEMS, noise=Noise.TEST)],
        [ITEMS, exact],
        [ITEMS] * 50,
    ]
    return [Ledger(events, run=f"{place:032x}") for place, events in enumerate(steps)]


class CertificateTarget(Target):
    """Certificates and ledgers in JSON: what is accepted costs at least what its events cost."""

    name, share = "certificate", 60

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        certificates = [Certificate.from_ledger(ledger, DELTA) for ledger in ledgers()]
        for name in RELEASES:
            write_original(name, folder / name)
            certificates.append(Certificate.from_ledger(read_ledger(folder / name), DELTA))
        self.documents = [certificate.to_dict() for certificate in certificates]
        self.texts = [json.dumps(document, indent=2).encode() for document in self.documents]

    def mutated(self, document: dict[str, Any], chance: Random) -> bytes:
        """JSON of a mutated document."""
        if chance.randrange(4):
            return json_text(mutate_json(document, chance), chance).encode(errors="surrogatepass")
        text = json.dumps(document, indent=2).encode()
        return mutate_bytes(text, self.texts, chance)

    def attempt(self, chance: Random) -> str:
        document = chance.choice(self.documents)
        is_ledger = chance.randrange(4) == 0
        content = self.mutated(document["ledger"] if is_ledger else document, chance)
        file = self.folder / "document.json"
        file.write_bytes(content)

        def read() -> None:
            if is_ledger:
                ledger = Ledger.load(file)
                check_ledger(json.loads(content)["events"], ledger)
                if ledger.events and not all(isinstance(e, PatternRelease) for e in ledger.events):
                    Certificate.from_ledger(ledger, DELTA).to_text()
            else:
                certificate = Certificate.load(file)
                check_certificate(json.loads(content), certificate)
                certificate.to_text()

        return outcome(read)


class ComposeTarget(CertificateTarget):
    """`budget compose` of a mutated certificate, ledger, journal or release with another one."""

    name, share = "compose", 14

    def attempt(self, chance: Random) -> str:
        document = chance.choice(self.documents)
        path, events = self.written(document, chance)
        other = self.folder / chance.choice(
            [name for name in RELEASES if name not in ("rating", "user")]
        )
        if chance.randrange(40) == 0:  # building the command takes a while
            return self.command(path, other)
        expected = squared_mu(read_document(other)["ledger"]["events"])

        def read() -> None:
            together = compose_releases([path, other], DELTA).together
            if together is None:
                return  # a mutated unit: the two do not compose
            if together.status is not Status.NONE and together.mu is not None:
                found = mpmath.mpf(together.mu) ** 2
                require(
                    found >= (expected + squared_mu(events())) * (1 - mpmath.mpf("1e-30")),
                    "the composed mu is understated",
                )

        return outcome(read)

    def written(self, document: dict[str, Any], chance: Random) -> tuple[Path, Any]:
        """Path of a mutated document in one of its forms, and a function that reads its events."""
        ledger = document["ledger"]
        if chance.randrange(3) == 0:
            header = {name: ledger[name] for name in ("format", "version", "run")}
            lines = [json.dumps(line) for line in (header, *ledger["events"])]
            text = "\n".join(lines) + "\n"
            if chance.randrange(2):
                content = mutate_lines(text, ",", chance).encode()
            else:
                place = chance.randrange(len(lines))
                lines[place] = json.dumps(mutate_json(json.loads(lines[place]), chance))
                content = ("\n".join(lines) + "\n").encode()
            file = self.folder / "journal.jsonl"
            file.write_bytes(content)
            return file, partial(journal_events, content)
        file = self.folder / "mutated.json"
        whole = {"format": bundle.FORMAT, "version": 1, "certificate": document, "facts": {}}
        content = self.mutated(chance.choice((document, ledger, whole)), chance)
        file.write_bytes(content)
        return file, lambda: read_document(file)["ledger"]["events"]

    def command(self, path: Path, other: Path) -> str:
        """Outcome of the command, which prints one line for an error."""
        result = commands.call("budget", "compose", path, other, "--json")
        require("internal error" not in result.stderr, result.stderr)
        require(result.returncode in (0, 1, 2), f"exit code {result.returncode}")
        if result.returncode == 0:
            json.loads(result.stdout)
            return "command: accepted"
        errors = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
        require(len(errors) == 1 and not result.stdout, result.stderr)
        return f"command: exit code {result.returncode}"


def journal_events(content: bytes) -> list[dict[str, Any]]:
    """Events in the complete lines of a journal."""
    lines = content[: content.rfind(b"\n")].split(b"\n")[1:]
    return [json.loads(line) for line in lines]


def read_document(path: Path) -> dict[str, Any]:
    """Certificate, or something with a ledger, in a file or release folder."""
    file = path / bundle.CERTIFICATE if path.is_dir() else path
    found: dict[str, Any] = json.loads(file.read_bytes())
    found = found.get("certificate", found)
    return found if "ledger" in found else {"ledger": found}
