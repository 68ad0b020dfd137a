"""NDCG and recall equal those of lenskit on the same lists. `make test` installs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.evaluate.metrics import accuracy
from taciturn.evaluate.ranking import RECALL_AT
from tests.evaluate.test_metrics import made_up
from tests.narrow import present
from tests.solvers.helpers import random_ratings

LENSKIT = Path(__file__).parents[2] / "build" / "lenskit"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (LENSKIT / "installed").exists(), reason="lenskit is installed by `make test`"
    ),
]

Pair = tuple[list[int], list[int]]


def lists(model: Any, train: Ratings, test: Ratings) -> list[Pair]:
    """Best items and relevant items of each user with relevant held-out ratings."""
    users, items = model.user_profiles, model.item_profiles
    scores = users.factors.astype(float) @ items.factors.T + items.biases
    pairs = []
    for user in range(test.shape[0]):
        mine = slice(*test.by_user.starts[user : user + 2])
        relevant = test.by_user.columns[mine][test.values()[mine] >= 4].tolist()
        if relevant:
            seen = set(
                train.by_user.columns[slice(*train.by_user.starts[user : user + 2])].tolist()
            )
            order = [item for item in np.argsort(-scores[user]).tolist() if item not in seen]
            pairs.append((order[:RECALL_AT], relevant))
    return pairs


def by_lenskit(pairs: list[Pair]) -> dict[str, float]:
    """Mean metrics of lists by lenskit, in another process."""
    script = Path(__file__).with_name("lenskit_metrics.py")
    found = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        input=json.dumps(pairs),
        env={**os.environ, "PYTHONPATH": str(LENSKIT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    means: dict[str, float] = json.loads(found.stdout)
    return means


@pytest.mark.parametrize(
    ("users", "items", "density"),
    [(80, 200, 0.1), (40, 12, 0.7), (20, 150, 0.9)],
    ids=["usual", "lists shorter than ten", "more relevant items than the list is long"],
)
def test_ndcg_and_recall_equal_those_of_lenskit(users: int, items: int, density: float) -> None:
    ratings = random_ratings(5, users=users, items=items, density=density)
    train, test = random_split(ratings, 0.5, 5)
    fit = made_up(ratings, seed=5)
    pairs, found = lists(fit.model, train, test), accuracy(fit, train, test)
    theirs = by_lenskit(pairs)
    assert 0 < present(found.ndcg) == pytest.approx(theirs["ndcg"], rel=1e-9)
    assert 0 < present(found.recall) == pytest.approx(theirs["recall"], rel=1e-9)


def test_lenskit_sees_a_list_in_another_order() -> None:
    """The comparison can fail: NDCG depends on the order, recall does not."""
    pairs = [([1, 2, 3, 4], [1, 4])]
    turned = [([3, 2, 1, 4], [1, 4])]
    one, two = by_lenskit(pairs), by_lenskit(turned)
    assert one["ndcg"] > two["ndcg"] and one["recall"] == two["recall"] == 1
