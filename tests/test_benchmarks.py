"""Benchmarks: imports, the float pass, timed functions and the report."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks import regimes
from benchmarks.__main__ import LONG, SPEED
from benchmarks.native import FloatPass
from benchmarks.noise import only_noise
from benchmarks.processes import python
from benchmarks.regime_sources import SOURCES, Source
from benchmarks.report import Bar, Row, Section, write
from benchmarks.training import paper_iteration, scipy_iteration
from benchmarks.where import _RUN
from benchmarks.where import SOLVERS as TIMED
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
        "| seconds | 2.5 | ≤ 3 | met |",
        "| more seconds | 5.0 | ≤ 3 | NOT MET |",
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
    assert kernels.keys() <= set(TIMED)
    for solver, kernel in kernels.items():
        found = python(_RUN, solver, "10k")
        assert kernel in found["spent"]
        assert ("noise" in found["spent"]) == (solver != "non-private")


def _regime_errors(seeds: int) -> dict[regimes.Task, dict[str, float]]:
    """Errors of a source in which nothing violates a requirement: flat, and ordered by unit."""
    names = [f"{unit}:{name}" for unit in regimes.UNITS for name in regimes.SOLVERS]
    names.remove("user:als")
    return {
        regimes.Task("wide-5k", epsilon, seed): {"mean": 20.0}
        | {name: 10 + regimes.UNITS.index(name.partition(":")[0]) for name in names}
        for epsilon in regimes.EPSILONS
        for seed in range(seeds)
    }


def _regime_rows(found: dict[regimes.Task, dict[str, float]], seeds: int) -> list[Row]:
    return list(regimes._rows(regimes._Errors("wide-5k", seeds, found)))


def test_errors_that_are_flat_and_ordered_violate_nothing() -> None:
    rows = _regime_rows(_regime_errors(3), 3)
    assert len(rows) == 8 * len(regimes.EPSILONS) and not any(row["violates"] for row in rows)
    assert all(bar.is_met for bar in regimes.bars(rows)) and regimes._summary(rows) == "none"


@pytest.mark.parametrize(
    ("name", "factor", "violated"),
    [
        ("value:als", 1.01, "rise, to_bias"),
        ("value:als fold-in", 1.2, "rise, to_bias"),
        ("rating:als fold-in", 0.9, "to_weaker"),
        ("user:als fold-in", 2.0, "rise, to_bias, to_mean"),
    ],
)
def test_a_planted_violation_is_found(name: str, factor: float, violated: str) -> None:
    found = _regime_errors(3)
    for seed in range(3):
        found[regimes.Task("wide-5k", 5.0, seed)][name] *= factor
    unit, _, solver = name.partition(":")
    rows = _regime_rows(found, 3)
    (row,) = (
        row for row in rows if (row["unit"], row["solver"], row["epsilon"]) == (unit, solver, 5.0)
    )
    assert row["violates"] == violated
    assert f"wide-5k {unit} {solver} ε=5" in regimes._summary(rows)
    assert not all(bar.is_met for bar in regimes.bars(rows))


def test_a_rise_within_two_standard_errors_is_no_violation() -> None:
    found = _regime_errors(2)
    found[regimes.Task("wide-5k", 20.0, 0)]["value:als"] *= 1.02
    found[regimes.Task("wide-5k", 20.0, 1)]["value:als"] *= 0.99
    assert not any(row["violates"] for row in _regime_rows(found, 2))


def test_an_absent_dataset_is_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TACITURN_DATA", "TACITURN_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    summary, absent = regimes.run(seeds=1, only=("anime-5k", "ml-100k-5k"))
    assert summary == {"violations": "none"}
    assert list(absent.values()) == ["anime-5k, ml-100k-5k"] and regimes.bars([summary]) == []


def test_unknown_regimes_are_refused() -> None:
    with pytest.raises(SystemExit, match="there is no source nowhere"):
        regimes.run(only=("nowhere",))


def test_regimes_have_the_sizes_that_they_state() -> None:
    few = Source("few", "synthetic:10k", 1_000, few=7).load()
    assert len(few) == 1_000 and max(np.diff(few.by_user.starts)) == 7
    some = Source("some", "synthetic:10k", 1_000).load()
    assert len(some) == 1_000 and some.shape[0] < few.shape[0]
    wide = SOURCES["wide-5k"].load()
    assert len(wide) == 5_000 and (wide.scale.low, wide.scale.high) == (1, 100)
    assert SOURCES["wide-5k"].load().digest() == wide.digest()


@pytest.mark.slow
def test_regimes_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regimes, "CELLS", tmp_path)
    task = regimes.Task("wide-5k", 20.0, 0)
    found = regimes.measure(task)
    assert {"mean", "value:als", "user:als fold-in", "rating:bias"} <= found.keys()
    monkeypatch.setattr(regimes, "_measured", lambda task: {})
    assert regimes.measure(task) == found
