"""What the benchmarks build on: the float pass is a gradient, the report says what was found."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks.native import FloatPass
from benchmarks.report import Bar, Section, write
from taciturn.data.synthetic import synthetic_ratings


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("factors", [20, 64])
def test_the_float_pass_is_both_gradients(factors: int, threads: int) -> None:
    ratings = synthetic_ratings("10k")
    random = np.random.default_rng(factors)
    users, items = (random.normal(size=(n, factors)).astype(np.float32) for n in ratings.shape)
    side, values = ratings.by_user, ratings.values()
    products = np.einsum("nk,nk->n", users[ratings.rows()], items[side.columns])
    table = scipy.sparse.csr_array(
        (products - values, side.columns, side.starts), shape=ratings.shape
    )
    found = FloatPass(side, values, users, items, threads)
    for _ in range(2):  # a second pass begins anew
        of_users, of_items = found.gradients()
        assert np.allclose(of_users, table @ items, rtol=1e-3, atol=1e-3)
        assert np.allclose(of_items, table.T @ users, rtol=1e-3, atol=1e-3)


def test_other_numbers_of_factors_are_refused() -> None:
    ratings = synthetic_ratings("10k")
    users, items = (np.zeros((n, 32), dtype=np.float32) for n in ratings.shape)
    with pytest.raises(ValueError, match="32 factors"):
        FloatPass(ratings.by_user, ratings.values(), users, items, 1).run()


def test_a_report_has_every_table_and_what_is_not_met(tmp_path: Path) -> None:
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
