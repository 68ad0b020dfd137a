"""Noise keys of trainings in tests: the same at every run, unless fresh ones are asked for.

A test of accuracy or of an audit holds for almost every draw of noise, but not for all of them, and
a check that fails once in some hundred runs for no reason teaches people to ignore it. Keys are
therefore derived from the function of the tests that starts a training. With TACITURN_TEST_NOISE=N
they are derived from N too, and with TACITURN_TEST_NOISE=fresh they come from the operating system:
run the suite so after changing a solver, to see that its margins hold for other draws.
"""

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taciturn.mechanisms.noise import SecureNoise

DRAW = os.environ.get("TACITURN_TEST_NOISE", "0")
_TESTS = Path(__file__).parent

_secure = SecureNoise.__init__


def _caller() -> str:
    """Innermost function of the tests on the stack, without its place on this machine."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_TESTS):
            return f"{file.relative_to(_TESTS).as_posix()} {frame.f_code.co_qualname}"
        frame = frame.f_back
    return "no test"


@contextmanager
def derived() -> Iterator[None]:
    """Let `SecureNoise` derive its keys. No two keys within a test are equal."""
    drawn: Counter[tuple[str, str]] = Counter()

    def begin(source: SecureNoise) -> None:
        caller = _caller()
        place = (os.environ.get("PYTEST_CURRENT_TEST", ""), caller)
        name = f"{DRAW} {caller} {drawn[place]}"
        drawn[place] += 1
        source._begin(hashlib.sha256(name.encode()).digest())

    with pytest.MonkeyPatch.context() as patch:
        if DRAW != "fresh":
            patch.setattr(SecureNoise, "__init__", begin)
        yield


@contextmanager
def fresh() -> Iterator[None]:
    """Let `SecureNoise` draw its keys from the operating system, as outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecureNoise, "__init__", _secure)
        yield
