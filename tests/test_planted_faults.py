"""`make sanitize` reports faults: each one planted in its build of the core ends the process."""

import os
import subprocess
import sys

import pytest

from taciturn import _core

SANITIZED = "TACITURN_SANITIZE" in os.environ
only_sanitized = pytest.mark.skipif(not SANITIZED, reason="run by `make sanitize`")


def call_core(expression: str) -> subprocess.CompletedProcess[str]:
    """Evaluate an expression in a process of its own."""
    script = f"import numpy as np; from taciturn import _core; print(_core.{expression})"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_only_the_sanitized_core_has_planted_faults() -> None:
    planted = {"write_past_end", "add_signed"}
    assert planted & set(dir(_core)) == (planted if SANITIZED else set())


@only_sanitized
def test_a_write_past_the_end_of_an_allocation_ends_the_process() -> None:
    result = call_core("write_past_end(100)")
    assert result.returncode != 0
    assert result.stdout == ""
    assert "AddressSanitizer: heap-buffer-overflow" in result.stderr
    assert "write_past_end" in result.stderr


@only_sanitized
def test_a_write_past_the_end_of_an_array_ends_the_process() -> None:
    """The kernel is given an array that claims to be longer than its memory."""
    counts = "np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.int64), (9,), (8,))"
    result = call_core(f"count_keys(np.array([8], dtype=np.int32), {counts})")
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr
    assert "count_keys" in result.stderr


@only_sanitized
def test_a_signed_overflow_ends_the_process() -> None:
    result = call_core("add_signed(2**31 - 1, 1)")
    assert result.returncode != 0
    assert result.stdout == ""
    assert "signed integer overflow" in result.stderr
    assert "planted_faults.cpp" in result.stderr


@only_sanitized
def test_a_sum_that_fits_is_no_fault() -> None:
    result = call_core("add_signed(2**31 - 2, 1)")
    assert (result.returncode, result.stdout, result.stderr) == (0, "2147483647\n", "")
