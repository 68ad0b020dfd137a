"""Trainings with public ratings: jobs, interrupted runs, memory."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data import load_public_ratings
from taciturn.data.public_ratings import GivenPublicRatings, with_public_ratings
from taciturn.errors import InvalidDocument, InvalidParameter, TaciturnError
from taciturn.release.read import load_release
from taciturn.solvers.als import user
from taciturn.solvers.catalog import make_solver
from taciturn.training.job import Job
from taciturn.training.memory import estimated_memory
from taciturn.training.outputs import Outputs, make_targets
from taciturn.training.workspace import make_binding
from tests.narrow import present
from tests.solvers.helpers import random_ratings
from tests.training.test_job import ANY, RATINGS, ordered, read


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "theirs.csv"
    random_ratings(1, items=25).to_frame().write_csv(file)
    return file


def job(theirs: Path, **options: Any) -> Job:
    known: dict[str, Any] = {"source": "x", "reading": ANY, "trained": ordered("als", unit="user")}
    return Job(public=GivenPublicRatings(str(theirs), "x"), **known | options)


def test_a_job_trains_with_public_ratings_and_says_whom_they_do_not_protect(
    theirs: Path, tmp_path: Path
) -> None:
    notes: list[str] = []
    training = job(theirs, outputs=Outputs(release=tmp_path / "r"))
    seen = training.preview(read=read, note=notes.append)
    trained = training.run(read=read)
    (note,) = [note for note in notes if "theirs.csv" in note]
    assert "a user who is also in them is not protected there" in note
    assert not any(character.isdigit() for character in note)  # no count of shared users
    (named,) = trained.certificate.public_inputs
    assert (named.name, named.ratings) == ("theirs.csv", len(pl.read_csv(theirs)))
    assert present(seen.certificate).public_inputs == (named,)
    release = load_release(tmp_path / "r")
    assert present(release.model.items).ids.to_list() == RATINGS.item_ids.to_list()


def test_a_solver_that_does_not_use_public_ratings_refuses_them(theirs: Path) -> None:
    with pytest.raises(InvalidParameter, match="bias does not use public ratings"):
        job(theirs, trained=ordered("bias"))


def test_a_run_resumes_only_with_the_same_public_ratings(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, update = Outputs(release=tmp_path / "r"), user.UserAlgorithm.update

    def interrupted(self: Any, step: int, state: Any, released: Any) -> Any:
        if step == 3:
            raise KeyboardInterrupt
        return update(self, step, state, released)

    with monkeypatch.context() as patch:
        patch.setattr(user.UserAlgorithm, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job(theirs, outputs=outputs).run(read=read)
    content = theirs.read_text()
    theirs.write_text(content.replace("5.0", "4.0"))
    with pytest.raises(TaciturnError, match="other data"):
        job(theirs, outputs=outputs).run(read=read, resume=True)
    theirs.write_text(content)
    trained = job(theirs, outputs=outputs).run(read=read, resume=True)
    assert trained.certificate.public_inputs[0].name == "theirs.csv"


def test_a_solver_that_ignores_public_ratings_is_not_bound_to_them(
    theirs: Path, tmp_path: Path
) -> None:
    def binding(name: str) -> list[bytes]:
        solver = make_solver(name, unit="value")
        targets = make_targets(Outputs(release=tmp_path / "r"), solver)
        ratings = with_public_ratings(RATINGS, load_public_ratings(theirs, scale="1:5:1"))
        found = make_binding(ratings, solver, None, seed=0, holdout=None, targets=targets)
        return [bytes(each) for each in found]

    before = {name: binding(name) for name in ("als", "bias")}
    theirs.write_text(theirs.read_text().replace("5.0", "4.0"))
    assert binding("als") != before["als"]
    assert binding("bias") == before["bias"]


def test_the_estimate_of_memory_counts_the_public_model(theirs: Path) -> None:
    ratings = with_public_ratings(RATINGS, load_public_ratings(theirs, scale="1:5:1"))
    als, bias = make_solver("als"), make_solver("bias")
    assert estimated_memory(ratings, als) > estimated_memory(RATINGS, als)
    assert estimated_memory(ratings, bias) == estimated_memory(RATINGS, bias)


def test_ratings_of_other_items_are_refused(theirs: Path) -> None:
    pl.DataFrame({"user_id": [1], "item_id": [7], "rating": [3]}).write_csv(theirs)
    with pytest.raises(InvalidDocument, match=r"no item of the ratings is rated in theirs\.csv"):
        job(theirs).preview(read=read)
