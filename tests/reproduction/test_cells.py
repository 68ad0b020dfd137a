"""Cells: one training run each, cached by its configuration."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn._internal.cell_cache import cell_key
from taciturn.data.splits import random_split
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.reproduction import cells
from taciturn.reproduction.cells import (
    HOLDOUT,
    MARKS,
    PATIENCE,
    SPLIT,
    TOLERANCE,
    Cell,
    Trace,
    cache_trace,
    cached_trace,
    cell_cache,
    run_cell,
)
from taciturn.reproduction.descents import Protocol, paper_solver
from taciturn.reproduction.published import Configuration
from taciturn.solvers.contract import Session
from tests.solvers.helpers import random_ratings

CELL = Cell(
    data="ml-1m",
    protocol=Protocol.AS_RUN,
    configuration=Configuration(epsilon_i=5.0, factors=4, step_size=0.01),
    iterations=60,
    seed=3,
    held_out=False,
)
RATINGS = random_ratings(1, users=40, items=30, density=0.5)


@pytest.mark.parametrize("protocol", list(Protocol))
def test_a_cell_has_the_errors_of_the_paper_solver(protocol: Protocol) -> None:
    cell = replace(CELL, protocol=protocol)
    trace = run_cell(cell, RATINGS, noise=InsecureTestNoise(1))
    solver = paper_solver(CELL.configuration, protocol, RATINGS.scale, 60)
    fit = solver.fit(RATINGS, session=Session(seed=3, noise=InsecureTestNoise(1)))
    assert np.allclose(trace.rmse, fit.owner_only_facts["rmse_before_step"], atol=1e-7)
    assert trace.iterations == 60 and trace.rmse_test == () and trace.ratings == len(RATINGS)


def test_cells_without_noise_depend_on_the_seed_only() -> None:
    quiet = replace(CELL, configuration=replace(CELL.configuration, epsilon_i=None))
    assert run_cell(quiet, RATINGS) == run_cell(quiet, RATINGS)
    assert run_cell(quiet, RATINGS).rmse != run_cell(replace(quiet, seed=4), RATINGS).rmse
    assert run_cell(CELL, RATINGS).rmse != run_cell(CELL, RATINGS).rmse


@pytest.mark.parametrize("protocol", list(Protocol))
def test_held_out_errors_equal_those_of_predictions(protocol: Protocol) -> None:
    """The error before step t is the error of a fit with t iterations."""
    cell = replace(CELL, held_out=True, protocol=protocol)
    trace = run_cell(cell, RATINGS, noise=InsecureTestNoise(2))
    train, test = random_split(RATINGS, HOLDOUT, SPLIT)
    marks = dict(trace.rmse_test)
    assert len(marks) == MARKS and max(marks) == 59
    solver = paper_solver(CELL.configuration, protocol, RATINGS.scale, 59)
    fit = solver.fit(train, session=Session(seed=3, noise=InsecureTestNoise(2)))
    predicted = fit.owner_model.predict_rows(test.rows(), test.by_user.columns)
    expected = np.sqrt(np.mean((predicted - test.values()) ** 2))
    assert marks[59] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_a_cell_without_iterations_ends_by_the_stopping_rule() -> None:
    cell = replace(CELL, iterations=None, held_out=True)
    trace = run_cell(cell, RATINGS, noise=InsecureTestNoise(3))
    errors = trace.rmse
    assert min(errors[:-PATIENCE]) - min(errors[-PATIENCE:]) < TOLERANCE
    assert min(errors[: -PATIENCE - 1]) - min(errors[-PATIENCE - 1 : -1]) >= TOLERANCE
    assert trace.rmse_test[-1][0] == len(errors) - 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path))
    monkeypatch.setattr(cells, "data_digest", lambda source: f"digest of {source}")
    return tmp_path / "paper"


TRACE = Trace(rmse=(1.0, *[0.5] * 59), rmse_test=(), ratings=12)


def test_results_are_cached_by_configuration(folder: Path) -> None:
    trace = TRACE
    assert cached_trace(CELL, cell_cache()) is None
    cache_trace(CELL, trace, cell_cache())
    assert cached_trace(CELL, cell_cache()) == trace
    others = [
        replace(CELL, data="netflix-slice"),
        replace(CELL, protocol=Protocol.AS_PRINTED),
        replace(CELL, configuration=replace(CELL.configuration, epsilon_i=None)),
        replace(CELL, configuration=replace(CELL.configuration, step_size=0.02)),
        replace(CELL, iterations=61),
        replace(CELL, iterations=None),
        replace(CELL, seed=4),
        replace(CELL, held_out=True),
    ]
    assert [cached_trace(other, cell_cache()) for other in others] == [None] * len(others)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "content",
    ["", "{", "{}", '{"rmse": 3}', "[]", '{"rmse": [1, 1], "rmse_test": [], "ratings": 3}'],
)
def test_a_damaged_result_is_run_again(folder: Path, content: str) -> None:
    cache_trace(CELL, TRACE, cell_cache())
    (file,) = folder.iterdir()
    key = cell_key(CELL.facts)
    file.write_text(f'{{"key": "{key}", "result": {content}}}')
    assert cached_trace(CELL, cell_cache()) is None


def test_results_of_other_data_are_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_trace(CELL, TRACE, cell_cache())
    assert cached_trace(CELL, cell_cache()) == TRACE
    monkeypatch.setattr(cells, "data_digest", lambda source: "another")
    assert cached_trace(CELL, cell_cache()) is None
