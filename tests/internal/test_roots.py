"""Roots by bisection of functions with known roots."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn._internal.roots import root


@given(st.floats(1e-200, 1e200))
def test_square_roots_are_found_to_the_last_bits(number: float) -> None:
    found = root(lambda x: x * x - number if x < 1e150 else math.inf, 0.0, 1e200)
    assert found == pytest.approx(math.sqrt(number), rel=1e-15)


def test_falling_functions_and_roots_at_the_ends_are_handled() -> None:
    assert root(lambda x: 1 - x, 0, 3) == 1
    assert root(lambda x: x, 0, 3) == 0 and root(lambda x: x - 3, 0, 3) == 3
    assert root(math.cos, 1, 2) == pytest.approx(math.pi / 2, abs=1e-15)
    with pytest.raises(ValueError, match="same sign"):
        root(lambda x: x + 1, 0, 3)
