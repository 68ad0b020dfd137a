"""Verification: forged certificates, maximum ε and δ, signatures and warnings about δ."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from taciturn._version import __version__
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, TaciturnError
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from taciturn.solvers.bias import BiasSolver
from tests.conftest import Command
from tests.release.helpers import copy, reseal, write_small
from tests.solvers.helpers import SOLVERS, small_solver

CLAIM = "audited and approved by the regulator"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify") / "release"
    write_small(path, "als")
    return path


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the document of a release and its checksums, as a forger would."""
    from taciturn._internal import strict_json

    file = path / bundle.CERTIFICATE
    document = json.loads(file.read_text())
    change(document)
    file.unlink()
    strict_json.write(file, document)
    reseal(path)


def recertify(document: dict[str, Any]) -> None:
    """Recompute a certificate from its ledger, as a forger would after changing events."""
    from taciturn.accounting.certificate import Certificate
    from taciturn.accounting.ledger import Ledger

    delta = document["certificate"]["statement"]["delta"]
    ledger = Ledger.from_dict(document["certificate"]["ledger"])
    document["certificate"] = json.loads(
        json.dumps(Certificate.from_ledger(ledger, delta).to_dict())
    )


def set_fact(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["facts"].update({name: value})


def set_setting(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["facts"]["settings"].update({name: value})


def set_pattern(document: dict[str, Any]) -> None:
    document["certificate"]["ledger"]["events"][-1]["purpose"] = f"nothing; {CLAIM}"
    recertify(document)


def set_flaw(document: dict[str, Any]) -> None:
    document["certificate"]["ledger"]["events"][0]["flaw"] = f"none at all, {CLAIM}"
    recertify(document)


Forgery = Callable[[dict[str, Any]], None]


def change_events(change: Callable[[list[dict[str, Any]]], Any]) -> Forgery:
    def forge(document: dict[str, Any]) -> None:
        change(document["certificate"]["ledger"]["events"])
        recertify(document)

    return forge


def in_all(**facts: Any) -> Forgery:
    return change_events(
        lambda events: [e.update(facts) for e in events if e["mechanism"] == "gaussian"]
    )


FORGERIES = {
    "no charge for the sampler": in_all(sampler_error=0.0),
    "rows": in_all(rows="items"),
    "first event only": change_events(lambda events: events.__delitem__(slice(1, -1))),
    "last round missing": change_events(lambda events: events.__delitem__(slice(-5, -1))),
    "a round too many": change_events(
        lambda events: events.insert(3, events[-2] | {"purpose": "round 7 of 2: residuals"})
    ),
    "other digits": change_events(
        lambda events: events[-2].update(purpose="round ٢ of 2: squares of residuals")
    ),
    "features left out": set_setting("pattern_features", False),
    "zeros in a version": set_fact("taciturn", "00.01.0001"),
    "solver": set_fact("solver", f"als, {CLAIM}"),
    "another solver": set_fact("solver", "alternating"),
    "version": set_fact("taciturn", f"0.1.1 {CLAIM}"),
    "no version": set_fact("taciturn", "new"),
    "a later version": set_fact("taciturn", "9.0.0"),
    "an unknown proof": in_all(proof="als.md#nothing"),
    "setting": set_setting("approval", CLAIM),
    "text in a setting": set_setting("factors", CLAIM),
    "setting of another solver": set_setting("tolerance", 0.1),
    "flag": set_setting("uncertainty", CLAIM),
    "unit": set_setting("unit", "user"),
    "pattern": set_pattern,
    "flaw": set_flaw,
    "a solver that is not private": set_fact("solver", "non-private"),
    "settings of none": set_fact("settings", {}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_is_refused_and_its_text_not_shown(
    name: str, release: Path, tmp_path: Path
) -> None:
    forged = copy(release, tmp_path / "forged")
    forge(forged, FORGERIES[name])
    verdict = verify_release(forged, allowed=frozenset(Status))
    assert not verdict.passed
    with pytest.raises(TaciturnError):
        load_release(forged)
    assert CLAIM not in " ".join(check.detail for check in verdict.checks)


def test_a_release_of_biases_with_factors_is_refused(tmp_path: Path) -> None:
    """Profiles of another solver with the name and the ledger of `bias`."""
    from taciturn.release.write import write_release
    from tests.release.helpers import certificate, small_fit

    bias, other = small_fit("bias"), small_fit("non-private")
    forged = replace(other, solver="bias", settings=bias.settings, ledger=bias.ledger)
    write_release(forged, certificate(bias), tmp_path / "r")
    assert not verify_release(tmp_path / "r").passed


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_every_solver_makes_releases_that_pass(name: str, unit: Unit, tmp_path: Path) -> None:
    from taciturn.training.train import train
    from tests.solvers.helpers import BUDGET, random_ratings

    solver = small_solver(name, unit)
    train(random_ratings(), solver, BUDGET if solver.is_private else None, output=tmp_path / "r")
    verdict = verify_release(tmp_path / "r", allowed=frozenset(Status))
    assert verdict.passed, [check for check in verdict.checks if not check.passed]
    assert verdict.release is not None and verdict.release.certificate.status is solver.status


BLOCKED = """
import sys
blocked = {"taciturn._core", "taciturn.mechanisms.noise", "taciturn.data.ratings", "fcntl"}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in blocked:
            raise ImportError(name)

sys.meta_path.insert(0, Finder())
sys.modules.pop("fcntl", None)
"""

COMMAND = """
from taciturn.cli import main
main()
"""

LIBRARY = """
import numpy as np
import taciturn

release = taciturn.load_release(sys.argv[1])
assert taciturn.verify_release(sys.argv[1]).passed
rows = np.zeros(1, dtype=np.int64)
assert 1 <= release.model.predict_rows(rows, rows)[0] <= 5
mine = release.model.fold_in({release.model.items.ids[0]: 5.0})
assert 1 <= release.model.with_user(mine.bias, mine.factors).predict_rows(rows, rows)[0] <= 5
assert not blocked & set(sys.modules)
"""


def without(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code that cannot import the compiled core, noise, ratings or fcntl."""
    command = [sys.executable, "-c", BLOCKED + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_verifying_needs_no_compiled_code_no_noise_and_no_fcntl(
    release: Path, tmp_path: Path
) -> None:
    good = without(COMMAND, "verify", release)
    assert good.returncode == 0, good.stderr
    forged = copy(release, tmp_path / "forged")
    forge(forged, FORGERIES["solver"])
    bad = without(COMMAND, "verify", forged)
    assert bad.returncode == 1 and CLAIM not in bad.stdout + bad.stderr


def test_reading_and_predicting_need_no_compiled_code_no_noise_and_no_fcntl(release: Path) -> None:
    found = without(LIBRARY, release)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max-epsilon", "10"], 0),
        (["--max-epsilon", "9.99"], 1),
        (["--max-delta", "1e-5"], 0),
        (["--max-delta", "1e-6"], 1),
        (["--max-epsilon", "10", "--max-delta", "1e-5"], 0),
        (["--max-epsilon", "-1"], 2),
        (["--max-delta", "nan"], 2),
    ],
)
def test_a_release_above_a_maximum_fails(
    taciturn: Command, release: Path, options: list[str], code: int
) -> None:
    result = taciturn("verify", release, *options, "--json")
    assert result.returncode == code, result.stderr
    if code < 2:
        document = json.loads(result.stdout)
        assert document["passed"] is (code == 0)
        limits = [check for check in document["checks"] if check["name"] == "limits"]
        assert [check["passed"] for check in limits] == [code == 0]


def test_a_release_without_a_guarantee_is_below_no_maximum(
    taciturn: Command, tmp_path: Path
) -> None:
    write_small(tmp_path / "open", "non-private")
    assert taciturn("verify", tmp_path / "open", "--allow", "none").returncode == 0
    limited = taciturn("verify", tmp_path / "open", "--allow", "none", "--max-epsilon", "1e6")
    assert limited.returncode == 1 and "no epsilon" in limited.stdout


def test_a_verdict_always_mentions_the_signature(
    taciturn: Command, release: Path, signed: Path
) -> None:
    plain, with_key = taciturn("verify", release), taciturn("verify", signed / "release")
    assert plain.returncode == with_key.returncode == 0
    (line,) = [line for line in plain.stdout.splitlines() if "signature" in line]
    assert "not signed" in line
    assert "signed with" in with_key.stdout
    document = json.loads(taciturn("verify", release, "--json").stdout)
    assert document["signed"] is False
    assert json.loads(taciturn("verify", signed / "release", "--json").stdout)["signed"] is True


def test_a_delta_above_one_in_the_number_of_users_is_warned_about(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    """1e-5 is small enough for six users, not for a hundred thousand."""
    fine = taciturn("verify", release, "--json")
    assert json.loads(fine.stdout)["warnings"] == []
    large = taciturn("verify", release, "--population", "100000")
    assert large.returncode == 0 and "1/100,000" in large.stderr
    assert json.loads(taciturn("verify", release, "--population", 10**6, "--json").stdout)[
        "warnings"
    ]
    assert taciturn("verify", release, "--population", "0").returncode == 2
    from taciturn.accounting.budget import Budget
    from taciturn.training.train import train
    from tests.solvers.helpers import random_ratings

    train(random_ratings(), BiasSolver(), Budget.from_epsilon(1, 0.05), output=tmp_path / "loose")
    loose = taciturn("verify", tmp_path / "loose")
    assert loose.returncode == 0 and "1/30" in loose.stderr  # its users are listed
    fewer = taciturn("verify", tmp_path / "loose", "--population", 5)
    assert "1/30" in fewer.stderr  # the listed users are the minimum


def test_a_release_candidate_reads_older_releases_and_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from taciturn.release import facts

    monkeypatch.setattr(facts, "__version__", "0.2.0rc1")
    for version in ("0.1.1", "0.2.0rc1"):
        assert facts.check_taciturn(version) == version


def test_malformed_and_later_versions_are_refused() -> None:
    from taciturn.release.facts import check_taciturn

    assert check_taciturn(__version__) == __version__
    for text in ("0.2.1a1", "0.3.0", "1.0.0.dev3", "12.34.56"):
        with pytest.raises(InvalidDocument, match="check it with version"):
            check_taciturn(text)
    malformed: tuple[Any, ...] = ("", "1", "0.1.1 or later", "0.1.1\n", "v0.1.1", "0.1.1+local", 3)
    for version in malformed:
        with pytest.raises(InvalidDocument):
            check_taciturn(version)


@dataclass(frozen=True, kw_only=True)
class OwnSolver(BiasSolver):
    """A solver that is not in the catalog."""

    name: ClassVar[str] = "mine"


def test_a_solver_outside_the_catalog_is_refused_before_it_spends(tmp_path: Path) -> None:
    from taciturn.training.train import save, train
    from tests.solvers.helpers import BUDGET, random_ratings

    with pytest.raises(InvalidDocument, match="must be one of"):
        train(random_ratings(), OwnSolver(), BUDGET, output=tmp_path / "r")
    with pytest.raises(InvalidDocument, match="must be one of"):
        save(OwnSolver().fit(random_ratings(), BUDGET), tmp_path / "r")
    assert not list(tmp_path.iterdir())
