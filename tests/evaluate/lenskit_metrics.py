"""NDCG@10 and recall@20 of lists by lenskit. Reads lists as JSON and writes means as JSON.

Run by `test_lenskit` in a process of its own, with the folder of lenskit in PYTHONPATH. lenskit
imports torch and uses it in training; its metrics run without it, so an empty module takes its
place.
"""

import json
import sys
from types import ModuleType
from typing import Any


class _Anything(type):
    """Type whose attributes are itself: for annotations, and for decorators that return nothing."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _Absent(metaclass=_Anything):
    def __new__(cls, given: Any = None, *more: Any, **options: Any) -> Any:
        return given


class _Torch(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent


def main() -> None:
    """Mean metrics of pairs of a list and the relevant items."""
    sys.modules["torch"] = _Torch("torch")
    from lenskit.data import ItemList
    from lenskit.metrics import NDCG, Recall
    from lenskit.metrics.ranking import LogRankWeight

    # By default, lenskit gives the first two ranks the same discount.
    metrics = {"ndcg": NDCG(10, weight=LogRankWeight(offset=1)), "recall": Recall(20)}
    pairs = [
        (ItemList(item_ids=listed, ordered=True), ItemList(item_ids=relevant))
        for listed, relevant in json.load(sys.stdin)
    ]
    means = {
        name: sum(float(metric.measure_list(*pair)) for pair in pairs) / len(pairs)
        for name, metric in metrics.items()
    }
    json.dump(means, sys.stdout)


if __name__ == "__main__":
    main()
