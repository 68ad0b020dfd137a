"""Writes cpp/ziggurat_edges.inc: python cpp/ziggurat_edges.py > cpp/ziggurat_edges.inc.

The edges r_1 > r_2 > … > r_L = 0 divide the region under f(x) = exp(−x²/2) into layers of equal
area v, where the lowest layer is widened by 2 ln 2/r_1 for the envelope of the tail:

    v = f(r_1)·(r_1 + 2 ln 2/r_1),     f(r_{i+1}) = f(r_i) + v/r_i,     f(r_L) = 1.

docs/proofs/sampler.md explains why. Needs mpmath.
"""

import sys

import mpmath

LAYERS = 512
mpmath.mp.dps = 50


def edges(first: mpmath.mpf) -> list[mpmath.mpf] | None:
    """Edges r_1 … r_{L−1} for a trial r_1, or None if the layers exceed the top."""
    height = mpmath.exp(-first * first / 2)
    area = height * (first + 2 * mpmath.log(2) / first)
    found = [first]
    for _ in range(LAYERS - 2):
        height += area / found[-1]
        if height >= 1:
            return None
        found.append(mpmath.sqrt(-2 * mpmath.log(height)))
    return found


def solve() -> list[mpmath.mpf]:
    """Edges for which the last layer ends exactly at f(0) = 1, by bisection."""
    low, high = mpmath.mpf(3), mpmath.mpf(5)  # too early, too late
    while high - low > mpmath.mpf(10) ** -45:
        middle = (low + high) / 2
        found = edges(middle)
        area = mpmath.exp(-(middle**2) / 2) * (middle + 2 * mpmath.log(2) / middle)
        if found is None or mpmath.exp(-(found[-1] ** 2) / 2) + area / found[-1] > 1:
            low = middle
        else:
            high = middle
    return edges(high)


def main() -> None:
    """Print the edges as hexadecimal doubles."""
    found = [*solve(), mpmath.mpf(0)]
    sys.stdout.write("// Written by ziggurat_edges.py; r_1 to r_512.\n")
    for edge in found:
        sys.stdout.write(f"{float(edge).hex()},  // {mpmath.nstr(edge, 20)}\n")


if __name__ == "__main__":
    main()
