"""`taciturn budget` end to end."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.accounts import account, steps_of
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import ExactRelease, PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from tests.accounting.test_ledger import ITEMS, MEAN, USERS
from tests.conftest import Command


def parsed(taciturn: Command, *arguments: object) -> dict[str, Any]:
    result = taciturn(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_paper_prints_the_published_figures(taciturn: Command) -> None:
    call = "budget paper --epsilon-i 0.4 --delta-i 0.01 --iterations 300 --delta 1e-5".split()
    document = parsed(taciturn, *call)
    assert f"{document['epsilon_paper']:.4f}" == "13.1837"
    assert f"{document['alpha']:.4f}" == "3.1523"
    assert f"{document['mu']:.6f}" == "2.229502"
    assert f"{document['epsilon_exact']:.6f}" == "11.437993"
    assert document["epsilon_zcdp"] == pytest.approx(document["epsilon_paper"], rel=1e-12)
    assert document["epsilon_rdp"] < document["epsilon_zcdp"] < document["epsilon_advanced"]
    assert document["warnings"] == []
    shown = taciturn(*call)
    assert shown.returncode == 0 and shown.stderr == ""
    assert "11.437993" in shown.stdout and "13.183663" in shown.stdout


def test_paper_warns_where_its_theorem_does_not_hold(taciturn: Command) -> None:
    result = taciturn(
        *"budget paper --epsilon-i 2 --delta-i 0.01 --iterations 3 --delta 1e-5 --json".split()
    )
    assert result.returncode == 0
    assert result.stderr.startswith("warning: epsilon_i = 2 is outside (0, 1)")
    assert len(json.loads(result.stdout)["warnings"]) == 1


@pytest.mark.parametrize(
    ("epsilon", "mu", "multiplier"),
    [(1, "0.26805112", "3.7306316"), (10, "2.0004456", "0.49988862")],
)
def test_calibrate_prints_known_multipliers(
    taciturn: Command, epsilon: int, mu: str, multiplier: str
) -> None:
    call = ["budget", "calibrate", "--epsilon", epsilon, "--delta", "1e-5"]
    document = parsed(taciturn, *call)
    assert f"{document['mu']:.8g}" == mu
    assert f"{document['noise_multiplier']:.8g}" == multiplier
    shown = dict(line.split()[:2] for line in taciturn(*call).stdout.splitlines()[1:])
    assert shown["mu"].startswith(mu[:8]) and float(shown["mu"]) <= document["mu"]
    # The printed number is rounded up: copied from the table, it gives more noise, not less.
    assert float(shown["noise_multiplier"]) >= document["noise_multiplier"]
    many = parsed(taciturn, *call, "--count", 100)
    assert many["noise_multiplier"] == pytest.approx(10 * document["noise_multiplier"], rel=1e-12)


def test_compose_accounts_for_noise_multipliers(taciturn: Command) -> None:
    document = parsed(
        taciturn,
        *"budget compose --noise-multiplier 5 --count 60 --noise-multiplier 2 --count 3".split(),
        *"--delta 1e-6".split(),
    )
    expected = account([steps_of(5, 60), steps_of(2, 3)], 1e-6)
    assert document["count"] == 63
    for name in ("mu", "delta", "epsilon_exact", "epsilon_rdp", "epsilon_advanced"):
        assert document[name] == getattr(expected, name)


def test_compose_accounts_for_releases(taciturn: Command, tmp_path: Path) -> None:
    folder, file = tmp_path / "release", tmp_path / "ledger.json"
    folder.mkdir()
    first, second = Ledger([ITEMS]), Ledger([USERS, MEAN])
    Certificate.from_ledger(first, 1e-5).save(folder / "certificate.json")
    second.save(file)
    document = parsed(taciturn, "budget", "compose", folder, file)
    expected = Certificate.from_ledger(Ledger([ITEMS, USERS, MEAN]), 1e-5)
    assert document["status"] == "proven" and document["unit"] == "value"
    assert document["epsilon"] == expected.epsilon
    assert document["epsilon_exact"] == pytest.approx(expected.epsilon, rel=1e-9)
    assert [each["mu"] for each in document["releases"]] == [first.spend().mu, second.spend().mu]
    shown = taciturn("budget", "compose", folder, file)
    assert shown.stdout.startswith("2 releases, unit `value`: proven\n") and shown.stderr == ""
    assert "together, if they are of the same data, certified" in shown.stdout
    assert "a release does not say which data it is of" in shown.stdout
    one = taciturn("budget", "compose", file).stdout
    assert "same data" not in one and "which data" not in one

    twice = taciturn("budget", "compose", folder, folder)
    assert twice.returncode == 2 and "same run" in twice.stderr


@pytest.mark.parametrize(("epsilon", "count", "each"), [(10, 12, 2.342), (2, 12, 0.5098)])
def test_calibrate_says_what_each_of_several_trainings_may_spend(
    taciturn: Command, epsilon: float, count: int, each: float
) -> None:
    call = ("budget", "calibrate", "--epsilon", epsilon, "--count", count)
    said = f"each of {count} trainings may spend epsilon = {each:g} at delta = 1e-05"
    assert said in taciturn(*call).stdout
    assert parsed(taciturn, *call)["epsilon_of_each_training"] == each
    total = Budget.from_epsilon(epsilon, 1e-5).mu
    one, more = (Budget.from_epsilon(each + step, 1e-5).mu for step in (0, 1e-4))
    assert one * count**0.5 <= total < more * count**0.5
    assert "trainings" not in taciturn(*call[:4]).stdout
    tiny = taciturn("budget", "calibrate", "--epsilon", "1e-4", "--count", 10**6)
    assert tiny.returncode == 2 and "too small for 1,000,000 trainings" in tiny.stderr


def test_compose_states_what_holds_for_mixed_units(taciturn: Command, tmp_path: Path) -> None:
    paths = []
    for unit in (Unit.VALUE, Unit.RATING):
        paths.append(tmp_path / f"{unit}.json")
        Certificate.from_ledger(Ledger([replace(ITEMS, unit=unit)]), 1e-5).save(paths[-1])
    shown = taciturn("budget", "compose", *paths)
    assert shown.returncode == 0, shown.stderr
    lines = {line[2:42].strip(): line[42:].strip() for line in shown.stdout.splitlines()}
    assert shown.stdout.startswith("2 releases, different privacy units: proven\n")
    assert lines["the value of one rating"].startswith("epsilon = ")
    assert lines["one rating and the fact that it exists"].startswith("unknown  a release under")
    assert lines["all ratings of one user, however many"].startswith("unknown  a release under")
    document = parsed(taciturn, "budget", "compose", *paths)
    assert document["unit"] is None and document["epsilon"] is None
    assert [total["epsilon"] is None for total in document["totals"]] == [
        total["reason"] is not None for total in document["totals"]
    ]
    exact = tmp_path / "exact.json"
    Certificate.from_ledger(Ledger([ExactRelease(purpose="sums", unit=Unit.USER)]), 1e-5).save(
        exact
    )
    assert "together: no guarantee" in taciturn("budget", "compose", paths[0], exact).stdout


def test_compose_with_an_exact_release_gives_no_guarantee(
    taciturn: Command, tmp_path: Path
) -> None:
    Ledger([ITEMS]).save(tmp_path / "a.json")
    Ledger([ExactRelease(purpose="the mean", unit=Unit.VALUE)]).save(tmp_path / "b.json")
    result = taciturn("budget", "compose", tmp_path / "a.json", tmp_path / "b.json", "--json")
    document = json.loads(result.stdout)
    assert document["status"] == "none" and document["epsilon"] is document["mu"] is None
    assert document["releases"][0]["status"] == "proven"
    assert "released without noise: the mean" in result.stderr
    shown = taciturn("budget", "compose", tmp_path / "a.json", tmp_path / "b.json")
    assert "together: no guarantee" in shown.stdout


def test_compose_refuses_a_forged_certificate(taciturn: Command, tmp_path: Path) -> None:
    document = Certificate.from_ledger(Ledger([ITEMS]), 1e-5).to_dict()
    document["statement"]["epsilon"] /= 2
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(document))
    result = taciturn("budget", "compose", file)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {file}: the certificate does not follow")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["curve.png", "curve.svg", "curve.PDF"])
def test_a_plot_is_written_in_the_format_of_its_name(
    taciturn: Command, tmp_path: Path, name: str
) -> None:
    call = "budget compose --noise-multiplier 5 --count 300 --noise-multiplier 9 --count 2".split()
    file = tmp_path / name
    result = taciturn(*call, "--plot", file)
    assert result.returncode == 0, result.stderr
    assert file.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml", b"%PDF-")
    assert list(tmp_path.iterdir()) == [file]


def test_a_plot_of_one_release_shows_a_point(tmp_path: Path) -> None:
    from taciturn.accounting.plots import plot_accountants

    plot_accountants(tmp_path / "one.svg", [(0.5, 1)], 1e-5)
    plot_accountants(tmp_path / "free.svg", [(0.01, 5)], 0.1)  # costs ε = 0
    assert "<use" in (tmp_path / "one.svg").read_text()


@pytest.mark.slow
def test_a_failed_plot_leaves_no_file(taciturn: Command, tmp_path: Path) -> None:
    call = "budget calibrate --epsilon 1 --plot".split()
    names = ["curve.txt", "curve", "curve.pgf", "absent/curve.png", f"{'a' * 253}.png"]
    for target in (tmp_path / name for name in names):
        result = taciturn(*call, target)
        assert result.returncode == 2
        assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


PAPER = "budget paper --epsilon-i 0.4 --delta-i 0.01 --iterations 300 --delta 1e-5"
CALIBRATE = "budget calibrate --epsilon 1 --delta 1e-5"
COMPOSE = "budget compose --noise-multiplier 5 --count 10 --delta 1e-5"


@pytest.mark.parametrize(
    "call",
    [
        *(CALIBRATE.replace("--epsilon 1", f"--epsilon {bad}") for bad in ("0", "-1", "nan")),
        *(CALIBRATE.replace("--epsilon 1", f"--epsilon {bad}") for bad in ("inf", "x", "1e400")),
        *(CALIBRATE.replace("1e-5", bad) for bad in ("0", "1", "-0.1", "nan", "2", "1e-400")),
        *(PAPER.replace("300", bad) for bad in ("0", "-5", "2.5", "many", "9" * 400)),
        PAPER.replace("0.4", "0"),
        PAPER.replace("0.4", "nan"),
        PAPER.replace("0.01", "1"),
        PAPER.replace("--iterations 300", ""),
        *(COMPOSE.replace("--count 10", f"--count {bad}") for bad in ("0", "-1", "1.5")),
        COMPOSE.replace("5", "0"),
        COMPOSE.replace("--noise-multiplier 5", ""),
        COMPOSE + " --count 3",
        COMPOSE + " absent.json",
        "budget compose",
        "budget compose absent.json",
        "budget compose absent.json --count 3",
        "budget compose --delta 0 --noise-multiplier 1",
        "budget compose /dev/zero",
        f"budget compose {'a' * 300}",
        PAPER.replace("0.4", "1e-200"),
        PAPER.replace("0.01", "1e-320"),
        "budget unknown",
        "unknown",
        "--unknown",
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(taciturn: Command, call: str) -> None:
    result = taciturn(*call.split())
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 500


def test_compose_of_releases_that_cost_nothing_is_zero(taciturn: Command, tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    Ledger([PatternRelease(purpose="counts", unit=Unit.VALUE)]).save(file)
    document = parsed(taciturn, "budget", "compose", file)
    assert (document["status"], document["epsilon"], document["mu"]) == ("proven", 0, 0)
