"""Benchmarks: imports, the float pass, timed functions and the report."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks.__main__ import LONG, SPEED
from benchmarks.native import FloatPass
from benchmarks.noise import only_noise
from benchmarks.processes import python
from benchmarks.report import Bar, Section, write
from benchmarks.training import paper_iteration, scipy_iteration
from benchmarks.where import _RUN, SOLVERS
from taciturn.data.synthetic import synthetic_ratings


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("factors", [20, 64])
def test_the_float_pass_is_both_gradients(factors: int, threads: int) -> None:
    ratings = synthetic_ratings("10k")
    random = np.random.default_rng(factors)
    users, items = (random.normal(size=(n, factors)).astype(np.float32) for n in ratings.shape)
    rows, values = ratings.by_user, ratings.values()
    products = np.einsum("nk,nk->n", users[ratings.rows()], items[rows.columns])
    table = scipy.sparse.csr_array(
        (products - values, rows.columns, rows.starts), shape=ratings.shape
    )
    found = FloatPass(rows, values, users, items, threads)
    for _ in range(2):  # a second pass does not add to the first
        of_users, of_items = found.gradients()
        assert np.allclose(of_users, table @ items, rtol=1e-3, atol=1e-3)
        assert np.allclose(of_items, table.T @ users, rtol=1e-3, atol=1e-3)


def test_other_numbers_of_factors_are_refused() -> None:
    ratings = synthetic_ratings("10k")
    users, items = (np.zeros((n, 32), dtype=np.float32) for n in ratings.shape)
    with pytest.raises(ValueError, match="32 factors"):
        FloatPass(ratings.by_user, ratings.values(), users, items, 1).run()


def test_a_report_has_every_table_and_every_bar(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"size": 1, "s": 2.5}, {"size": 2, "s": 5}, {"other": "x"}]
    bars = [Bar.at_most("seconds", "2.5", 3), Bar.at_most("more seconds", 5, 3)]
    write(tmp_path, [Section("times", "How long", "About it.", rows, bars)], {"threads": 2})
    text = (tmp_path / "report.md").read_text()
    for line in (
        "| threads | 2 |",
        "| seconds | 2.5 | 3 | met |",
        "| more seconds | 5.0 | 3 | NOT MET |",
        "## times: How long",
        "| 2 | 5 |",
        "| x |",
    ):
        assert line in text.splitlines()
    whole = json.loads((tmp_path / "report.json").read_text())
    assert whole["benchmarks"][0]["rows"] == rows and whole["machine"] == {"threads": 2}


@pytest.mark.parametrize("name", [*SPEED, *LONG])
def test_every_benchmark_imports(name: str) -> None:
    module = import_module(f"benchmarks.{name}")
    assert callable(module.run) and module.__doc__


def test_timed_iterations_can_be_repeated() -> None:
    ratings = synthetic_ratings("10k")
    for iterate in (paper_iteration(ratings, 4), scipy_iteration(ratings, 4)):
        for _ in range(3):
            iterate()


def test_a_table_of_only_noise_has_its_shape() -> None:
    release = only_noise(10, 3, threads=2)
    for _ in range(2):
        (table,) = release().tables
        assert table.shape == (10, 3) and np.unique(table).size == 30


@pytest.mark.slow
def test_time_of_a_training_is_split_by_kernel() -> None:
    kernels = {"bias": "grid_sums", "als:rating": "error_sums", "non-private": "ridge_rows"}
    assert kernels.keys() <= set(SOLVERS)
    for solver, kernel in kernels.items():
        found = python(_RUN, solver, "10k")
        assert kernel in found["spent"]
        assert ("noise" in found["spent"]) == (solver != "non-private")
