"""Parallel ranges: each row once with any number of threads, and errors are raised."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import threadpoolctl

from taciturn._internal.parallel import for_ranges, thread_count, without_blas_threads
from taciturn.errors import InvalidParameter


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("total", "size"), [(0, 3), (1, 3), (10, 3), (9, 3), (7, 100)])
def test_every_row_is_processed_once(total: int, size: int, threads: int) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def work(begin: int, end: int) -> None:
        assert begin % size == 0 and end - begin <= size
        with lock:
            seen.extend(range(begin, end))

    for_ranges(work, total, size=size, threads=threads)
    assert sorted(seen) == list(range(total))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failure_in_a_thread_is_raised(threads: int) -> None:
    def work(begin: int, end: int) -> None:
        if begin == 4:
            raise RuntimeError("row 4")

    with pytest.raises(RuntimeError, match="row 4"):
        for_ranges(work, 10, size=2, threads=threads)


def test_a_thread_count_is_positive() -> None:
    assert thread_count(3) == 3 and thread_count(None) >= 1
    with pytest.raises(InvalidParameter, match="threads"):
        thread_count(0)


def test_blas_has_one_thread_while_ours_run() -> None:
    def threads_of_blas() -> set[int]:
        pools = threadpoolctl.threadpool_info()
        return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    assert (np.eye(2) @ np.eye(2)).any()  # loads BLAS
    (before,) = threads_of_blas()
    assert without_blas_threads(threads_of_blas)() == {1}
    assert without_blas_threads(without_blas_threads(threads_of_blas))() == {1}
    assert threads_of_blas() == {before}
    # If two calls overlap, the limit ends with the later one.
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        entered.set()
        left.wait(10)

    thread = threading.Thread(target=without_blas_threads(first))
    thread.start()
    entered.wait(10)
    assert without_blas_threads(threads_of_blas)() == {1} == threads_of_blas()

    def second() -> None:
        left.set()
        thread.join()

    without_blas_threads(second)()
    assert threads_of_blas() == {before}


_TRAIN = """
import hashlib, sys
from taciturn.data.synthetic import synthetic_ratings
from taciturn.accounting.budget import Budget
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.contract import Session

session = Session(threads=int(sys.argv[1]), noise=InsecureTestNoise(7))
fit = AlsSolver(factors=4).fit(
    synthetic_ratings("100k"), Budget.from_epsilon(20, 1e-5), session
)
profiles = fit.model.users.factors.tobytes() + fit.model.items.factors.tobytes()
print(hashlib.sha256(profiles).hexdigest())
"""


@pytest.mark.slow
def test_a_fit_does_not_depend_on_our_threads_or_those_of_blas() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _TRAIN, str(threads)],
            env=os.environ | {"OPENBLAS_NUM_THREADS": str(blas)},
            capture_output=True,
            check=True,
        ).stdout
        for threads, blas in ((1, 4), (2, 2), (4, 1))
    }
    assert len(found) == 1
