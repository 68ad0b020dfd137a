"""Training jobs: checked before ratings are read, with notes and warnings for the owner."""

from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.ledger import Status
from taciturn.data import load
from taciturn.data.id_lists import IdLists
from taciturn.data.options import ReadingOptions
from taciturn.errors import InvalidParameter
from taciturn.release.read import load_release
from taciturn.solvers.paper import PaperSolver
from taciturn.training.job import FOLD_IN_INSTEAD, Budgeted, Job
from taciturn.training.outputs import Outputs
from tests.solvers.helpers import random_ratings

RATINGS = random_ratings(1, users=40, items=25)
ANY = ReadingOptions()


def ordered(name: str = "bias", unit: str = "value", **options: Any) -> Budgeted:
    return Budgeted.of(name, unit, options.pop("epsilon", 5.0), 1e-5, options)


def read(source: object, reading: ReadingOptions) -> Any:
    return RATINGS


def unread(source: object, reading: ReadingOptions) -> Any:
    raise AssertionError("the ratings were read")


@pytest.mark.parametrize(
    ("name", "unit", "epsilon", "options", "words"),
    [
        ("bias", "value", None, {}, "--epsilon NUMBER"),
        ("non-private", "value", 1.0, {}, "not private"),
        ("magic", "value", 1.0, {}, "must be one of als"),
        ("als", "value", None, {"epsilon_i": 1.0}, "no setting epsilon_i"),
        ("paper", "user", 1.0, {}, "als and bias"),
    ],
)
def test_a_solver_and_a_budget_that_do_not_match_are_refused(
    name: str, unit: str, epsilon: float | None, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Budgeted.of(name, unit, epsilon, 1e-5, options)


def test_a_solver_with_a_budget_of_its_own_states_delta() -> None:
    paper = Budgeted.of("paper", "value", None, 1e-6, {"epsilon_i": 0.4})
    assert paper.budget is None
    assert isinstance(paper.solver, PaperSolver) and paper.solver.delta == 1e-6


def test_lists_that_cannot_be_used_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidParameter, match="no list of users"):
        Job(source="x", reading=ANY, trained=ordered(unit="user"), lists=IdLists(users=Path("u")))
    with pytest.raises(InvalidParameter, match="--item-id-type"):
        reading = ReadingOptions.of(item_id_type="int")
        Job(source="x", reading=reading, trained=ordered(), lists=IdLists(items=Path("i")))
    with pytest.raises(InvalidParameter, match="-o DIR"):
        Job(source="x", reading=ANY, trained=ordered()).run(read=unread)


def test_a_note_says_which_lists_come_from_the_ratings(tmp_path: Path) -> None:
    notes: list[str] = []
    job = Job(
        source="x",
        reading=ANY,
        trained=ordered(unit="rating"),
        outputs=Outputs(release=tmp_path / "r"),
    )
    seen = job.preview(read=read, note=notes.append)
    assert seen.status is Status.PROVEN and not (tmp_path / "r").exists()
    result = job.run(read=read, note=notes.append)
    assert result.release == tmp_path / "r"
    first, second = notes
    assert first == second and "list of users and items is taken from the ratings" in first


def test_the_owner_is_warned_of_a_large_delta() -> None:
    warnings: list[str] = []
    trained = Budgeted.of("bias", "value", 5.0, 0.1, {})
    Job(source="x", reading=ANY, trained=trained).preview(read=read, warn=warnings.append)
    (warning,) = warnings
    assert "0.1 is not below 1/40" in warning and "owner-only" in warning


def test_an_interrupted_training_names_the_option_resume(tmp_path: Path) -> None:
    notes: list[str] = []
    trained = ordered("gradient", factors=2, iterations=4)
    job = Job(
        source="x", reading=ANY, trained=trained, outputs=Outputs(release=tmp_path / "r"), seed=3
    )

    class Bar:
        def __enter__(self) -> Any:
            def progress(done: int, total: int) -> None:
                if done == 2:
                    raise KeyboardInterrupt

            return progress

        def __exit__(self, *error: object) -> None:
            notes.append("closed")

    with pytest.raises(KeyboardInterrupt):
        job.run(read=read, note=notes.append, progress=Bar)
    closed, interrupted = notes
    assert closed == "closed" and "resume=True" in interrupted
    assert job.run(resume=True, read=read).certificate.status is Status.PROVEN


def test_a_note_names_the_option_for_private_items(tmp_path: Path) -> None:
    notes: list[str] = []
    trained = Budgeted.of("paper", "value", 5.0, 1e-5, {"factors": 2, "iterations": 2})
    outputs = Outputs(release=tmp_path / "r")
    Job(source="x", reading=ANY, trained=trained, outputs=outputs).run(read=read, note=notes.append)
    assert any("--private-items-out" in note for note in notes)


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize(("epsilon", "option"), [(0.1, "--solver bias"), (1e3, "--factors")])
def test_a_note_says_how_to_train_on_all_ratings_with_the_judged_number_of_factors(
    unit: str, epsilon: float, option: str, tmp_path: Path
) -> None:
    notes: list[str] = []
    job = Job(
        source="x",
        reading=ANY,
        trained=ordered("als", unit, epsilon=epsilon),
        outputs=Outputs(release=tmp_path / "r"),
        holdout=0.1,
    )
    result = job.run(read=lambda source, reading: load("synthetic:10k"), note=notes.append)
    assert result.factors == load_release(tmp_path / "r").model.factor_count
    assert (result.factors == 0) == (epsilon < 1)
    (judged,) = [each for each in notes if "without the held-out ratings" in each]
    assert f"with {result.factors} factors" in judged
    assert judged.endswith(option if result.factors == 0 else f"{option} {result.factors}")
    assert any("not personalised" in each for each in notes) == (result.factors == 0)


def test_a_number_of_factors_that_was_given_needs_no_note(tmp_path: Path) -> None:
    notes: list[str] = []
    job = Job(
        source="x",
        reading=ANY,
        trained=ordered("als", "rating", factors=2, iterations=4),
        outputs=Outputs(release=tmp_path / "r"),
        holdout=0.1,
    )
    assert job.run(read=read, note=notes.append).factors == 2
    assert not any("held-out" in each for each in notes)


@pytest.mark.parametrize(("unit", "is_said"), [(None, True), ("rating", False), ("user", False)])
def test_a_training_under_the_default_unit_says_what_value_would_change(
    unit: str | None, is_said: bool, tmp_path: Path
) -> None:
    notes: list[str] = []
    trained = Budgeted.of("bias", unit, 1.0, 1e-5, {})
    assert trained.solver.unit == (unit or "rating")
    job = Job(source="x", reading=ANY, trained=trained, outputs=Outputs(release=tmp_path / "r"))
    job.preview(read=read, note=notes.append)
    said = [note for note in notes if "--unit value" in note]
    assert len(said) == is_said
    if is_said:
        assert "publish which user rated which item" in said[0] and "more accurate" in said[0]
    job.run(read=read, note=(again := list[str]()).append)
    assert [note for note in again if "--unit value" in note] == said


def test_solvers_that_support_value_only_need_a_chosen_unit() -> None:
    for name in ("gradient", "input-perturbation", "paper"):
        with pytest.raises(InvalidParameter, match=f"{name} supports unit value only, which does"):
            Budgeted.of(name, None, 1.0, 1e-5, {})
        assert Budgeted.of(name, "value", 1.0, 1e-5, {}).solver.unit == "value"
    assert Budgeted.of("non-private", None, None, 1e-5, {}).solver.unit == "value"


@pytest.mark.parametrize("unit", ["value", "rating"])
def test_a_note_says_that_folding_in_is_more_accurate(unit: str, tmp_path: Path) -> None:
    """Only where users are published without having been asked for."""
    for name, options, count in (
        ("als", {}, 1),
        ("als", {"serve": "profiles"}, 0),
        ("als", {"serve": "fold-in"}, 0),
        ("bias", {}, 0),
    ):
        notes: list[str] = []
        outputs = Outputs(release=tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}")
        trained = ordered(name, unit, **options)
        Job(source="x", reading=ANY, trained=trained, outputs=outputs).run(
            read=read, note=notes.append
        )
        assert notes.count(FOLD_IN_INSTEAD) == count


def test_a_release_served_by_fold_in_has_no_users(tmp_path: Path) -> None:
    trained = ordered("als", "rating", serve="fold-in")
    with pytest.raises(InvalidParameter, match="fold-in.* cannot contain users"):
        Job(
            source="x",
            reading=ANY,
            trained=trained,
            outputs=Outputs(release=tmp_path / "r", users_out="ids"),
        )
    job = Job(
        source="x",
        reading=ANY,
        trained=trained,
        outputs=Outputs(release=tmp_path / "r"),
        holdout=0.2,
    )
    result = job.run(read=read)
    assert result.rmse_test is not None and result.rmse_test < 3
    assert load_release(tmp_path / "r").facts.user_ids == "none"
