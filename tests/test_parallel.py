"""Ranges are covered once, whatever the threads, and failures are not swallowed."""

import threading

import pytest

from tacit._parallel import for_ranges, thread_count
from tacit.errors import InvalidParameter


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("total", "size"), [(0, 3), (1, 3), (10, 3), (9, 3), (7, 100)])
def test_every_row_once(total: int, size: int, threads: int) -> None:
    seen, lock = [], threading.Lock()

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


def test_thread_count() -> None:
    assert thread_count(3) == 3 and thread_count(None) >= 1
    with pytest.raises(InvalidParameter, match="threads"):
        thread_count(0)
