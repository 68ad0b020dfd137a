"""Trainings with public item features: jobs, binding of interrupted runs, memory."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data import load_item_features
from taciturn.data.id_lists import IdLists, with_item_features
from taciturn.data.named_features import GivenFeatures
from taciturn.data.options import ReadingOptions
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.release.read import load_release
from taciturn.solvers.catalog import make_solver
from taciturn.training.job import Job
from taciturn.training.memory import estimated_memory
from taciturn.training.outputs import Outputs, make_targets
from taciturn.training.workspace import make_binding
from tests.narrow import present
from tests.training.test_job import ANY, RATINGS, ordered, read, unread


@pytest.fixture
def films(tmp_path: Path) -> Path:
    file = tmp_path / "films.csv"
    pl.DataFrame({"item_id": [100, 101, 102, 999], "kind": ["a", "b", "a", "b"]}).write_csv(file)
    return file


def job(films: Path | str, **options: Any) -> Job:
    known: dict[str, Any] = {
        "source": "x",
        "reading": ANY,
        "trained": ordered("als", unit="rating"),
    }
    return Job(features=GivenFeatures(str(films), "x"), **known | options)


def test_a_job_trains_with_features_and_says_that_they_are_public(
    films: Path, tmp_path: Path
) -> None:
    notes: list[str] = []
    training = job(films, outputs=Outputs(release=tmp_path / "r"))
    seen = training.preview(read=read, note=notes.append)
    trained = training.run(read=read)
    assert any("films.csv" in note and "no rating may affect them" in note for note in notes)
    (named,) = trained.certificate.public_inputs
    assert named.name == "films.csv"
    assert present(seen.certificate).public_inputs == (named,)
    items = present(load_release(tmp_path / "r").model.items).ids
    assert items.to_list() == [*RATINGS.item_ids, 999]


def test_an_item_list_and_the_features_are_joined(films: Path, tmp_path: Path) -> None:
    pl.DataFrame({"item_id": [*RATINGS.item_ids, 500]}).write_csv(tmp_path / "items.csv")
    notes: list[str] = []
    lists = IdLists(items=tmp_path / "items.csv")
    training = job(films, lists=lists, outputs=Outputs(release=tmp_path / "r"))
    training.run(read=read, note=notes.append)
    release = load_release(tmp_path / "r")
    assert present(release.model.items).ids.to_list() == [*RATINGS.item_ids, 500, 999]
    assert release.facts.ids_from_ratings == ("users",)


def test_features_that_cannot_be_used_are_refused_before_anything_is_read(films: Path) -> None:
    with pytest.raises(InvalidParameter, match="bias does not use item features"):
        job(films, trained=ordered("bias"))
    with pytest.raises(InvalidParameter, match="x has no item features of its own"):
        job("builtin")
    films.write_text("item_id,kind\n1,a\n1,b\n")
    with pytest.raises(InvalidDocument, match="duplicate item ids"):
        job(films).preview(read=unread)


def test_a_run_does_not_resume_with_other_features(films: Path, tmp_path: Path) -> None:
    def binding(name: str) -> list[bytes]:
        solver = make_solver(name, unit="value")
        targets = make_targets(Outputs(release=tmp_path / "r"), solver)
        ratings = with_item_features(RATINGS, load_item_features(films))
        found = make_binding(ratings, solver, None, seed=0, holdout=None, targets=targets)
        return [bytes(each) for each in found]

    before = {name: binding(name) for name in ("als", "bias")}
    films.write_text(films.read_text().replace("b", "c"))
    assert binding("als") != before["als"]
    assert binding("bias") == before["bias"]  # it does not use them


def test_the_estimate_of_memory_counts_features() -> None:
    table = pl.DataFrame({"item_id": RATINGS.item_ids, "x": range(25), "y": [0, 1] * 12 + [5]})
    ratings = with_item_features(RATINGS, load_item_features(table))
    als, bias = make_solver("als"), make_solver("bias")
    assert estimated_memory(ratings, als) > estimated_memory(RATINGS, als)
    assert estimated_memory(ratings, bias) == estimated_memory(RATINGS, bias)


def test_the_ratings_are_read_once(films: Path) -> None:
    calls: list[object] = []

    def count(source: object, reading: ReadingOptions) -> Any:
        calls.append(source)
        return RATINGS

    job(films).preview(read=count)
    assert calls == ["x"]
