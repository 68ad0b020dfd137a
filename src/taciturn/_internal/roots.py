"""Roots of monotone functions, without `scipy.optimize`, which takes half a second to import."""

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a function between two numbers, to the last bit, by bisection.

    Raises `ValueError` if the function has the same sign at both.
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0:
        return low
    if at_high == 0:
        return high
    if (at_low > 0) == (at_high > 0):
        raise ValueError("the function has the same sign at both ends")
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return middle
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
