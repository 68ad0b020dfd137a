"""The card of a release: its answer, its numbers, and the texts of the owner."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taciturn as library
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.data.id_lists import with_id_lists
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.release import bundle
from taciturn.release.about import LENGTH_MAX, About
from taciturn.release.card import escaped
from taciturn.release.meaning import strengths
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.public_inputs import ids_from_ratings
from tests.accounting.test_ledger import ITEMS
from tests.conftest import Command
from tests.release.helpers import certificate, reseal
from tests.solvers.helpers import SOLVERS, random_ratings, small_solver

ABOUT = About(
    name="Loans", owner="City library", purpose="Recommend books", contact="privacy@library.example"
)


def trained(name: str, unit: Unit, epsilon: float = 1.0, **options: Any) -> Fit:
    solver = small_solver(name, unit)
    budget = Budget.from_epsilon(epsilon, 1e-5) if solver.is_private else None
    return solver.fit(random_ratings(users=8, items=6), budget, Session(**options))


def card_of(fit: Fit, folder: Path, **options: Any) -> str:
    if fit.model.users is None:
        options["users_out"] = UsersOut.NONE
    write_release(fit, certificate(fit), folder, **options)
    assert verify_release(folder, allowed=frozenset(Status)).passed
    return (folder / bundle.CARD).read_text(encoding="utf-8")


def answer(card: str) -> str:
    return card.split("## May I publish this?\n\n")[1].splitlines()[0]


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_the_card_answers_by_the_status_and_contradicts_nothing(
    name: str, unit: Unit, tmp_path: Path
) -> None:
    card = card_of(trained(name, unit), tmp_path / "r")
    status = load_release(tmp_path / "r").certificate.status
    assert answer(card).startswith("**Yes, if" if status is Status.PROVEN else "**No.**")
    has_numbers = "## What do the numbers mean?" in card
    assert has_numbers == (status is Status.PROVEN) == ("strong protection" in card)
    assert ("| guarantee | proven |" in card) == (status is Status.PROVEN)
    assert ("unit `value`" in card) == (unit is Unit.VALUE)
    assert ("Which user rated which item is not protected" in card) == (
        unit is Unit.VALUE and status is Status.PROVEN
    )
    if status is Status.PROVEN:
        assert ("No user appears in these files" in card) == (unit is Unit.USER)
        assert ("users.parquet" in card) == (unit is not Unit.USER)
        assert ("ratings of one user together are protected less" in card) == (
            unit is not Unit.USER
        )


def test_a_release_with_test_noise_is_not_for_publication(tmp_path: Path) -> None:
    card = card_of(trained("bias", Unit.RATING, noise=InsecureTestNoise(1)), tmp_path / "r")
    assert answer(card) == (
        "**No.** Its noise came from a test source, so anyone can reproduce it and subtract it."
    )
    assert "What do the numbers mean" not in card and "**Yes" not in card


@pytest.mark.parametrize(
    ("epsilon", "start", "grade"),
    [
        (1, "**Yes, if every point below is acceptable.**", "strong protection"),
        (4, "**Yes, if every point below is acceptable.** The", "moderate protection"),
        (10, "**Only with good reason.**", "weak protection"),
        (20, "**No.** The guarantee is proven, but", "practically no protection"),
    ],
)
def test_the_answer_depends_on_the_budget(
    epsilon: float, start: str, grade: str, tmp_path: Path
) -> None:
    card = card_of(trained("bias", Unit.RATING, epsilon), tmp_path / "r")
    assert answer(card).startswith(start)
    assert re.search(rf"^- 1 rating: epsilon = [\d.]+, .*\*\*{grade}\*\*$", card, re.MULTILINE)


@pytest.mark.parametrize("unit", Unit)
def test_numbers_on_the_card_are_those_of_the_ledger(unit: Unit, tmp_path: Path) -> None:
    """Odds and rates are the certificate's, rounded up; groups weaken as in the group lines."""
    fit = trained("bias", unit)
    card, found = card_of(fit, tmp_path / "r"), certificate(fit)
    shown = re.findall(r"^- (\d+) .*: epsilon = ([\d.]+), found in ([\d.]+) of 100", card, re.M)
    assert [int(size) for size, _, _ in shown] == [line.size for line in found.group]
    for (_, epsilon, rate), line in zip(shown, found.group, strict=True):
        assert line.epsilon is not None and 0 <= float(epsilon) - line.epsilon <= 1e-4
        exact = 100 * fit.ledger.spend(group=line.size).true_positive_rate_upper(0.01)
        assert 0 <= float(rate) - exact <= 0.0101
    assert f"at most {math.ceil(100 * math.exp(found.epsilon or 0)) / 100:.2f} times" in card
    assert f"the odds that they are right are at most {shown[0][2]} : 1" in card
    together = "10 users together" if unit is Unit.USER else "10 ratings of one user together"
    assert together in card


def test_a_huge_budget_is_not_written_as_a_number(tmp_path: Path) -> None:
    card = card_of(trained("bias", Unit.RATING, 174), tmp_path / "r")
    assert "can be more than a million times as likely" in card
    found = strengths(Certificate.from_ledger(Ledger([replace(ITEMS, noise_scale=1e-3)]), 1e-5))
    assert found[-1].grade == "practically no protection"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("users", "items")),
        ({"users": range(40)}, ("items",)),
        ({"items": range(130)}, ("users",)),
    ],
)
def test_lists_taken_from_the_ratings_are_named_in_note_card_and_certificate(
    options: dict[str, Any], expected: tuple[str, ...], tmp_path: Path
) -> None:
    ratings = with_id_lists(random_ratings(), **options)
    assert ids_from_ratings(ratings, Unit.RATING) == expected
    assert ids_from_ratings(ratings, Unit.USER) == tuple({*expected} - {"users"})
    assert ids_from_ratings(ratings, Unit.VALUE) == ()
    half = ratings.select(ratings.values() > 2)  # a split keeps the lists
    card = card_of(library.BiasSolver().fit(half, Budget.from_epsilon(1, 1e-5)), tmp_path / "r")
    said = f"The list of {' and '.join(expected)} was taken from the ratings and counts as public"
    assert said in card
    document = json.loads((tmp_path / "r" / bundle.CERTIFICATE).read_text())
    assert document["facts"]["ids_from_ratings"] == list(expected)
    assert load_release(tmp_path / "r").facts.ids_from_ratings == expected


def test_given_lists_are_not_said_to_come_from_the_ratings(
    taciturn: Command, tmp_path: Path
) -> None:
    ratings = with_id_lists(random_ratings(), users=range(40), items=range(130))
    fit = library.BiasSolver().fit(ratings, Budget.from_epsilon(1, 1e-5))
    assert "taken from the ratings" not in card_of(fit, tmp_path / "r")
    assert "taken from the ratings" not in taciturn("verify", tmp_path / "r").stdout
    other = library.BiasSolver().fit(random_ratings(), Budget.from_epsilon(1, 1e-5))
    library.save(other, tmp_path / "s")
    shown = taciturn("verify", tmp_path / "s").stdout
    assert "the list of users and items was taken from the ratings" in shown


@pytest.mark.slow
def test_texts_of_the_owner_are_on_the_card_and_in_the_facts(
    taciturn: Command, tmp_path: Path
) -> None:
    texts = [each for pair in ABOUT.given().items() for each in (f"--{pair[0]}", pair[1])]
    options = ("--solver", "bias", "--epsilon", 1, "-o", tmp_path / "r")
    result = taciturn("train", "synthetic:10k", *options, *texts)
    assert result.returncode == 0, result.stderr
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    for line in (
        "| dataset | Loans |",
        "| owner | City library |",
        "| purpose | Recommend books |",
    ):
        assert line in card
    release = load_release(tmp_path / "r")
    assert release.facts.about == ABOUT
    assert f"| trained | {release.facts.date} (UTC)" in card
    shown = json.loads(taciturn("verify", tmp_path / "r", "--json").stdout)
    assert shown["about"] == ABOUT.given() and shown["ids_from_ratings"] == ["users", "items"]
    fit = library.BiasSolver().fit(random_ratings(), Budget.from_epsilon(1, 1e-5))
    library.save(fit, tmp_path / "s", about=ABOUT)
    outputs = library.Outputs(release=tmp_path / "t", about=ABOUT)
    library.train(random_ratings(), budget=Budget.from_epsilon(1, 1e-5), output=outputs)
    assert load_release(tmp_path / "s").facts.about == load_release(tmp_path / "t").facts.about
    assert load_release(tmp_path / "t").facts.about == ABOUT


@pytest.mark.parametrize(
    "text", ["", "  ", "two\nlines", "bell\a", "\u202eright to left", "x" * (LENGTH_MAX + 1), 5]
)
def test_texts_that_could_forge_a_card_are_refused(text: Any, tmp_path: Path) -> None:
    for name in ("name", "owner", "purpose", "contact"):
        with pytest.raises(InvalidParameter, match=name):
            About(**{name: text})
    path = tmp_path / "r"
    card_of(trained("bias", Unit.RATING), path, about=ABOUT)
    document = json.loads((path / bundle.CERTIFICATE).read_text())
    forged: list[Any] = [{"name": text}, {"name": None}, {}, {"title": "x"}, "x", [], None]
    for about in forged:
        document["facts"]["about"] = about
        (path / bundle.CERTIFICATE).write_text(json.dumps(document))
        reseal(path)
        failed = [each.name for each in verify_release(path).checks if not each.passed]
        assert failed == ["contents"]


@pytest.mark.parametrize("lists", ["users", ["items", "users"], ["users", "users"], [1], None, {}])
def test_forged_id_lists_are_refused(lists: Any, tmp_path: Path) -> None:
    path = tmp_path / "r"
    card_of(trained("bias", Unit.RATING), path)
    document = json.loads((path / bundle.CERTIFICATE).read_text())
    document["facts"]["ids_from_ratings"] = lists
    (path / bundle.CERTIFICATE).write_text(json.dumps(document))
    reseal(path)
    assert [each.name for each in verify_release(path).checks if not each.passed] == ["contents"]


@pytest.mark.parametrize("unit", Unit)
def test_releases_without_optional_facts_verify(unit: Unit, tmp_path: Path) -> None:
    """Releases need not state texts of the owner or which id lists come from the ratings."""
    path = tmp_path / "r"
    card_of(trained("als", unit), path)
    document = json.loads((path / bundle.CERTIFICATE).read_text())
    for name in ("ids_from_ratings", "about"):
        document["facts"].pop(name, None)
    (path / bundle.CERTIFICATE).write_text(json.dumps(document))
    reseal(path)
    assert verify_release(path).passed
    release = load_release(path)
    assert release.certificate.unit is unit
    assert release.facts.ids_from_ratings is None and release.facts.about == About()


def test_markup_in_a_text_is_inert() -> None:
    text = escaped("a|b <script>x</script> [c](d) *e* `f` _g_ \\ & ~h~ ![i](j) # k")
    assert text == (
        r"a\|b &lt;script&gt;x&lt;/script&gt; \[c\](d) \*e\* \`f\` \_g\_ \\ &amp; \~h\~ "
        r"\!\[i\](j) \# k"
    )
