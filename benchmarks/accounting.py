"""Exact ε of composed Gaussian releases: Taciturn against dp-accounting's loss distributions."""

from time import perf_counter

from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from taciturn.accounting import gaussian

CASES = [(5.0, 10), (5.0, 100), (20.0, 300), (50.0, 2000)]
DELTA = 1e-5


def run() -> list[dict[str, object]]:
    """Time and ε of both, for the same releases."""
    rows = []
    for multiplier, count in CASES:
        start = perf_counter()
        for _ in range(100):
            ours = gaussian.epsilon(DELTA, gaussian.compose([(1 / multiplier, count)]))
        seconds = (perf_counter() - start) / 100
        start = perf_counter()
        event = SelfComposedDpEvent(GaussianDpEvent(multiplier), count)
        theirs = PLDAccountant().compose(event).get_epsilon(DELTA)
        theirs_seconds = perf_counter() - start
        rows.append(
            {
                "multiplier": multiplier,
                "count": count,
                "epsilon": round(ours, 6),
                "epsilon_pld": round(theirs, 6),
                "ms": round(1000 * seconds, 3),
                "ms_pld": round(1000 * theirs_seconds, 1),
                "times_faster": round(theirs_seconds / seconds),
            }
        )
    return rows
