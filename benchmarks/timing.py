"""Comparable times: contenders alternate, and the best time of each counts."""

from collections.abc import Callable, Mapping
from time import perf_counter


def best_of(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 9, slow: float = 1.0
) -> dict[str, float]:
    """Best time of each contender over interleaved rounds, in seconds.

    A contender that takes more than `slow` seconds runs in the first two rounds only.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for number in range(rounds):
        for name, work in contenders.items():
            if number > 1 and best[name] > slow:
                continue
            start = perf_counter()
            work()
            best[name] = min(best[name], perf_counter() - start)
    return best
