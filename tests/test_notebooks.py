"""Reprs, HTML, logs and progress: short, escaped, and the same for neighbouring datasets."""

import json
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn._internal.progress import Bar
from taciturn.data.options import ReadingKeywords, ReadingOptions
from taciturn.errors import InvalidInput, InvalidParameter
from taciturn.solvers.catalog import CATALOG, make_solver
from tests.solvers.helpers import SOLVERS, random_ratings, small_solver

BUDGET = taciturn.Budget.from_epsilon(2, 1e-5)
RATINGS = random_ratings(2, users=25, items=12)


def without_one_user() -> taciturn.Ratings:
    """A neighbour under unit `user`; the public list of items is the same."""
    fewer = RATINGS.to_frame().filter(pl.col("user_id") != 7)
    return taciturn.with_id_lists(taciturn.load(fewer, scale="1:5:1"), items=RATINGS.item_ids)


def without_one_rating() -> taciturn.Ratings:
    """A neighbour under unit `rating`; the public lists are the same."""
    fewer = taciturn.load(RATINGS.to_frame().slice(1), scale="1:5:1")
    return taciturn.with_id_lists(fewer, users=RATINGS.user_ids, items=RATINGS.item_ids)


def another_value() -> taciturn.Ratings:
    """A neighbour under unit `value`."""
    frame = RATINGS.to_frame()
    values = frame["rating"].to_list()
    values[0] = 1.0 if values[0] == 5.0 else 5.0
    return taciturn.load(frame.with_columns(rating=pl.Series(values)), scale="1:5:1")


NEIGHBOURS: dict[str, Callable[[], taciturn.Ratings]] = {
    "value": another_value,
    "rating": without_one_rating,
    "user": without_one_user,
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> taciturn.Release:
    solver = taciturn.AlsSolver(unit="rating", iterations=3, factors=2)
    folder = tmp_path_factory.mktemp("releases") / "a <b> & 'c'"
    return taciturn.load_release(taciturn.save(solver.fit(RATINGS, BUDGET), folder))


@pytest.fixture(scope="module")
def comparison() -> taciturn.Comparison:
    plan = taciturn.Plan(
        solvers=("bias", "non-private-bias"), units=("rating",), epsilons=(1.0, 2.0), seeds=2
    )
    return taciturn.run_comparison(RATINGS, plan, source="<script>alert('x')</script>")


class Reader(HTMLParser):
    """Text of HTML, and the tags that are open at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def read(shown: Any) -> str:
    """Text of an object's HTML; checks that every tag is closed and none is foreign."""
    html = shown._repr_html_()
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    known = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p"}
    assert set(re.findall(r"</?(\w+)", html)) <= known
    return reader.text


def test_a_certificate_and_a_release_have_short_reprs(release: taciturn.Release) -> None:
    certificate = release.certificate
    assert len(certificate.events) > 5
    assert repr(certificate) == (
        "Certificate(status='proven', unit='rating', epsilon=2.0000, delta=1e-05, "
        f"mu=0.501552, events={len(certificate.events)})"
    )
    assert repr(release).count("\n") == 1 and len(repr(release)) < 400
    for part in ("solver: als", "users: 25 (ids)", "items: 12", repr(certificate)):
        assert part in repr(release)


def test_html_of_a_release_states_its_guarantee(release: taciturn.Release) -> None:
    for shown in (release, release.certificate):
        text = read(shown)
        assert "epsilon = 2.0000 at delta = 1e-05; mu = 0.501552." in text
        assert "a rating and the fact that it exists (unit rating)" in text
    assert "a <b> & 'c'" in read(release)


def test_html_of_a_certificate_without_guarantee_states_none() -> None:
    fit = taciturn.NonPrivateBiasSolver().fit(RATINGS)
    certificate = taciturn.Certificate.from_ledger(fit.ledger, 1e-5)
    assert "There is no guarantee" in read(certificate)
    assert "guarantee\n" not in read(certificate).replace("no guarantee", "")
    assert repr(certificate) == "Certificate(status='none', unit='value', events=1)"
    session = taciturn.Session(noise=taciturn.InsecureTestNoise(1))
    void = taciturn.BiasSolver(unit="value").fit(RATINGS, BUDGET, session)
    text = read(taciturn.Certificate.from_ledger(void.ledger, 1e-5))
    assert "there is no guarantee" in text and "numbers\n" in text


def test_html_of_a_budget_states_what_an_attacker_can_reach() -> None:
    text = read(BUDGET)
    assert "at a false-positive rate of 1%, the true-positive rate is at most 3.41%" in text


def test_html_of_a_comparison_is_escaped_and_owner_only(comparison: taciturn.Comparison) -> None:
    text = read(comparison)
    assert "<script>alert('x')</script>" in text and "owner-only" in text
    assert "non-private-bias" in text
    lines = repr(comparison).splitlines()
    assert "owner-only" in lines[0] and len(lines) == 1 + (1 + 3) + 1 + (2 + 3 + 3)


def test_html_of_ratings_names_how_they_were_prepared() -> None:
    twice = pl.concat([RATINGS.to_frame()] * 2)
    merged = taciturn.load(twice, scale="1:5:1", duplicates="last")
    assert "repeated rows" in read(merged) and "repeated rows" not in read(RATINGS)
    assert "1:5:1" in read(RATINGS)


@pytest.mark.parametrize("unit", NEIGHBOURS)
def test_ratings_look_the_same_as_their_neighbours(unit: str) -> None:
    other = NEIGHBOURS[unit]()
    assert (repr(RATINGS), RATINGS._repr_html_()) == (repr(other), other._repr_html_())


def test_reprs_hold_no_private_number(tmp_path: Path) -> None:
    solver = taciturn.BiasSolver(unit="user")
    trained = taciturn.train(RATINGS, solver, BUDGET, output=tmp_path / "release", holdout=0.3)
    assert trained.rmse_test is not None and trained.fit is not None
    assert f"{trained.rmse_test:.3f}"[:4] not in repr(trained).partition("certificate")[0]
    assert repr(trained) == (
        f"Trained(release={str(tmp_path / 'release')!r}, certificate={trained.certificate!r})"
    )
    # Under unit user the number of users, here 25, is private.
    owned = trained.fit.owner_model
    assert "25" not in repr(owned) + repr(owned.users) + repr(trained.fit)
    folded = owned.fold_in({RATINGS.item_ids[0]: 4.0})
    assert str(folded.bias)[:4] not in repr(folded)
    assert "12345" not in repr(taciturn.Session(user_seed=12345))


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_a_log_is_the_same_for_neighbouring_ratings(
    name: str, unit: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="taciturn")
    logs, steps = [], []
    for ratings in (RATINGS, NEIGHBOURS[unit]()):
        solver = small_solver(name, unit)
        seen: list[tuple[int, ...]] = []
        session = taciturn.Session(progress=lambda *step, seen=seen: seen.append(step))
        solver.fit(ratings, BUDGET if solver.is_private else None, session)
        logs.append([record.getMessage() for record in caplog.records])
        steps.append(seen)
        caplog.clear()
    assert logs[0] == logs[1] and steps[0] == steps[1]
    assert logs[0][0].startswith(f"training {name} under unit {unit}") and len(logs[0]) > 2


def test_a_training_logs_where_its_release_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="taciturn")
    solver = taciturn.BiasSolver(unit="value")
    taciturn.train(RATINGS, solver, BUDGET, output=tmp_path / "new", holdout=0.2)
    assert caplog.messages[-1] == f"wrote the release {tmp_path / 'new'}"


@pytest.mark.parametrize("has_terminal", [True, False])
def test_a_bar_shows_counts_and_time(
    has_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: has_terminal, raising=False)
    monkeypatch.setattr("taciturn._internal.progress._REDRAW_SECONDS", 0.0)
    monkeypatch.setattr("taciturn._internal.progress._LINE_SECONDS", 0.0)
    bar = Bar("training")
    for done in range(4):
        bar(done, 3)
    shown = capsys.readouterr().err
    assert re.search(r"training \[#{10}-{20}\] 1 of 3, 0 s, 0 s left", shown)
    assert re.search(r"training \[#{30}\] 3 of 3, 0 s", shown)
    assert shown.count("\r") == (4 if has_terminal else 0)
    assert shown.count("\n") == (1 if has_terminal else 4)


def test_progress_is_a_bar_a_function_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    solver = taciturn.BiasSolver(unit="value")
    solver.fit(RATINGS, BUDGET, taciturn.Session(progress=lambda *step: seen.append(step)))
    assert seen[0] == (0, 4) and seen[-1] == (4, 4)
    solver.fit(RATINGS, BUDGET)
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidParameter, match="progress must be True or a function"):
        taciturn.Session(progress="yes")  # type: ignore[arg-type]


def test_cross_validation_holds_each_rating_out_once() -> None:
    seen: list[tuple[int, int]] = []
    solver = taciturn.NonPrivateBiasSolver()
    found = taciturn.cross_validate(
        RATINGS, solver, folds=3, seed=4, progress=lambda *step: seen.append(step)
    )
    splits = list(taciturn.k_fold(RATINGS, 3, seed=4))
    assert sum(len(test) for _, test in splits) == len(RATINGS)
    expected = [taciturn.rmse(solver.fit(train), test) for train, test in splits]
    assert [fold.rmse for fold in found.folds] == pytest.approx(expected)
    assert found.mean() == pytest.approx(sum(expected) / 3)
    error = found.standard_error()
    assert error is not None and error > 0
    metrics = ["rmse", "mae", "ndcg", "recall", "item_coverage", "novelty"]
    assert found.to_frame().columns == ["fold", *metrics]
    assert "owner-only" in repr(found) and f"{found.mean():.4f}" in repr(found)
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_cross_validation_has_nothing_to_publish() -> None:
    found = taciturn.cross_validate(RATINGS, taciturn.BiasSolver(unit="value"), BUDGET, folds=2)
    assert list(vars(found)) == ["folds"]
    assert all(type(fold) is taciturn.Accuracy for fold in found.folds)


def test_cross_validation_without_rankings_says_so() -> None:
    found = taciturn.cross_validate(RATINGS, taciturn.NonPrivateBiasSolver(), folds=2)
    without = replace(found, folds=(replace(found.folds[0], ndcg=None), found.folds[1]))
    assert without.mean("ndcg") is None and without.standard_error("ndcg") is None
    assert "NDCG" not in repr(without)


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_settings_of_a_solver_survive_json(name: str, unit: Any) -> None:
    options: dict[str, Any] = {"factors": 3, "iterations": 2, "regularization": 1.0}
    known = {key: each for key, each in options.items() if key in CATALOG[name].settings}
    for solver in (make_solver(name, unit=unit), make_solver(name, unit=unit, **known)):
        again = taciturn.Solver.from_dict(json.loads(json.dumps(solver.to_dict())))
        assert again == solver and type(again) is type(solver)
        assert again.settings == solver.settings


def test_a_fit_tells_how_to_repeat_it() -> None:
    solver = taciturn.AlsSolver(unit="rating", factors=2, iterations=2)
    fit = solver.fit(RATINGS, BUDGET)
    assert taciturn.Solver.from_dict({"solver": fit.solver, "settings": fit.settings}) == solver


def test_numbers_of_numpy_become_json_numbers() -> None:
    three: Any = np.int64(3)
    two: Any = np.int32(2)
    solver = taciturn.AlsSolver(factors=three, iterations=two)
    assert json.loads(json.dumps(solver.to_dict())) == solver.to_dict()
    assert solver == taciturn.AlsSolver(factors=3, iterations=2)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"solver": "als"},
        {"solver": "nothing", "settings": {}},
        {"solver": ["als"], "settings": {}},
        {"solver": "als", "settings": {"name": 1}},
        {"solver": "als", "settings": {3: 1}},
        {"solver": "als", "settings": {"factors": "many"}},
        {"solver": "als", "settings": {}, "more": 1},
    ],
)
def test_a_document_that_is_no_solver_is_refused(document: Any) -> None:
    with pytest.raises(InvalidInput):
        taciturn.Solver.from_dict(document)


def test_reading_options_of_load_are_all_typed() -> None:
    explicit = {"scale", "columns", "timestamps"}
    fields = set(get_type_hints(ReadingOptions))
    assert set(get_type_hints(ReadingKeywords)) == fields - explicit


@pytest.mark.parametrize("solver", [taciturn.AlsSolver, taciturn.BiasSolver])
def test_units_are_typed_by_name_too(solver: type) -> None:
    names = get_args(get_type_hints(solver)["unit"])
    assert {each for name in names for each in get_args(name)} == set(taciturn.Unit)


def test_a_development_run_can_be_repeated_but_not_passed_off() -> None:
    solver = taciturn.AlsSolver(unit="rating", factors=2, iterations=2)
    fits = [
        solver.fit(RATINGS, BUDGET, taciturn.Session(noise=taciturn.InsecureTestNoise(seed)))
        for seed in (1, 1, 2)
    ]
    one, same, other = (fit.predict(3, 105) for fit in fits)
    assert one == same != other
    assert fits[0].ledger.status is taciturn.Status.VOID
