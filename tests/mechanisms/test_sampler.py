"""The compiled sampler: conditions of its proof, a reference in Python, statistical tests.

The statistical tests draw fresh secure noise. Each rejects a correct sampler with probability at
most 1e-7; there are fewer than a hundred, so the false-positive rate of this file is below 1e-5.
"""

import itertools
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from taciturn import _core
from taciturn.accounting import sampler
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import InsecureTestNoise, SecureNoise
from tests.instruction_sets import every_set, on_every_set

ROOT = Path(__file__).parent.parent.parent
SCALES = [2.0**20, 1234567.891, 1.9 * 2**27, math.pi * 2**30, 2.0**34, 1.37 * 2**41, 2.0**48]
LAYERS = 512
FIRST_EDGE = float.fromhex("0x1.ee08aaaebb3efp+1")
LOG_TWO = float.fromhex("0x1.62e42fefa39efp-1")
CHAIN = 0x5E2D58D8B3BCDF1A  # ⌊2^64/e⌋
FALSE_POSITIVE_RATE = 1e-7

with mpmath.workdps(50):
    assert int(mpmath.floor(mpmath.exp(-1) * 2**64)) == CHAIN


class Layers:
    """The table of one scale in 50-digit arithmetic, as docs/proofs/sampler.md names its parts."""

    def __init__(self, sigma: float) -> None:
        self.table = table = _core.Ziggurat(sigma)
        self.sigma = mpmath.mpf(sigma)
        self.area = mpmath.mpf(table.height[0]) * table.width[0]
        self.begins = [mpmath.mpf(0)]  # y_0 to y_512
        for width in table.width:
            self.begins.append(self.begins[-1] + self.area / width)

    def target(self, k: int) -> mpmath.mpf:
        return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * self.sigma**2))


@pytest.fixture(params=SCALES, ids=lambda sigma: f"{sigma:.3g}")
def layers(request: pytest.FixtureRequest) -> Layers:
    with mpmath.workdps(50):
        return Layers(request.param)


def test_the_table_is_stored_as_exactly_as_the_proof_says(layers: Layers) -> None:
    table = layers.table
    with mpmath.workdps(50):
        for layer in range(LAYERS):
            assert table.width[layer] < 2**52
            assert abs(table.height[layer] * table.width[layer] / layers.area - 1) < 4e-16
            begin = layers.begins[layer]
            assert abs(table.lower[layer] - begin) <= 4e-16 * begin


def test_the_table_meets_the_conditions_with_the_stated_margins(layers: Layers) -> None:
    """Section 2 of the proof; the margins are those it states."""
    table, begins, target = layers.table, layers.begins, layers.target
    with mpmath.workdps(50):
        # The layers cover the top, and beyond its width each lies above the curve.
        assert begins[LAYERS] - 1 > 5.9e-5
        assert min(begins[i] / target(table.width[i]) - 1 for i in range(1, LAYERS)) > 5.9e-5
        # Plain acceptance is right.
        plain = [i for i in range(LAYERS) if table.inside[i] >= 0]
        assert min(target(table.inside[i]) / begins[i + 1] - 1 for i in plain) > 3.2e-8
        # The envelope covers the tail, and stays above it from cell to cell.
        assert table.height[0] / target(table.tail_start) - 1 > 5.9e-5
        decay = mpmath.mpf(table.tail_start) * table.tail_cell / layers.sigma**2
        assert decay / mpmath.log(2) - 1 > 4.3 / layers.sigma
        # No more than two layers are next to a boundary.
        heights = (begins[i + 1] - begins[i] for i in range(LAYERS))
        assert all(height > 1e-3 * top for height, top in zip(heights, begins[1:], strict=True))


def test_the_exponential_is_accurate() -> None:
    with mpmath.workdps(30):
        for w in np.concatenate([np.linspace(0, 1, 500), np.linspace(1, 40, 500), [1e-300, 0.0]]):
            assert abs(_core.exp_minus(w) / mpmath.exp(-mpmath.mpf(w)) - 1) < 5e-16


@pytest.mark.slow
def test_the_edges_equal_the_output_of_their_script() -> None:
    script = ROOT / "cpp" / "ziggurat_edges.py"
    result = subprocess.run(
        [sys.executable, str(script)], capture_output=True, check=True, timeout=120
    )
    assert result.stdout == (ROOT / "cpp" / "ziggurat_edges.inc").read_bytes()


def test_the_tail_beyond_14_sigma_is_below_its_constant() -> None:
    """P(|k| > 14σ) with the boundary rounded inwards at the smallest scale."""
    with mpmath.workdps(30):
        assert mpmath.erfc((14 - 2.0**-20) / mpmath.sqrt(2)) < sampler.TAIL * 0.99


def drawn_on_every_set(
    table: _core.Ziggurat, words: np.ndarray, count: int
) -> tuple[int | None, list[int]]:
    """Number of words used and integers drawn, which must be the same on every instruction set."""

    def draw() -> tuple[int | None, list[int]]:
        out = np.zeros(count, np.int64)
        return table.fill(words, out), out.tolist()

    found = on_every_set(draw)
    for name, each in found.items():
        # Too few words may leave other integers behind.
        assert each == found["portable"] or each[0] is found["portable"][0] is None, name
    return found["portable"]


@pytest.mark.parametrize("sigma", SCALES)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100_003])
def test_every_instruction_set_draws_the_same_integers(sigma: float, count: int) -> None:
    words = np.random.default_rng(count).integers(0, 2**64, 2 * count + 64, np.uint64)
    used, _ = drawn_on_every_set(_core.Ziggurat(sigma), words, count)
    assert used is not None


def crafted(layer: int, uniform: int, negative: bool = False) -> int:
    return (int(negative) << 63) | (layer << 52) | uniform


@pytest.mark.parametrize("scale", [2.0**20, 2.0**48])
def test_rare_branches_agree_with_the_reference(scale: float) -> None:
    """Words made to fall on seams: no magnitude, biased fractions, the tail, the top layer."""
    table = _core.Ziggurat(scale)
    special = [crafted(layer, 0, negative) for layer in range(LAYERS) for negative in (False, True)]
    for layer in range(LAYERS):
        width = table.width[layer]
        for k in (1, table.inside[layer], table.inside[layer] + 1, width - 1):
            first = -(-(max(k, 0) << 52) // width)  # the smallest uniform that gives k
            special += [crafted(layer, first), crafted(layer, min(first + 1, 2**52 - 1), True)]
    rest = np.random.default_rng(5).integers(0, 2**64, 40 * len(special), np.uint64)
    words = np.concatenate([np.array(special, dtype=np.uint64), rest])
    _, drawn = drawn_on_every_set(table, words, len(special))
    assert drawn == reference_draws(table, words, len(special))


def reference_draws(table: _core.Ziggurat, words: np.ndarray, count: int) -> list[int]:
    """Slow, obvious sampler: one draw after the other, in Python integers."""
    stream = iter(words[count:].tolist())
    widths, inside, lower, height = table.width, table.inside, table.lower, table.height
    drawn = []
    for first in words[:count].tolist():
        for word in itertools.chain([first], stream):
            layer, negative = (word >> 52) & 511, word >> 63
            magnitude, fraction = divmod((word & (2**52 - 1)) * widths[layer], 2**52)
            while fraction < 2**52 % widths[layer]:  # the same layer and sign again
                magnitude, fraction = divmod((next(stream) & (2**52 - 1)) * widths[layer], 2**52)
            if layer == 0 and magnitude >= table.tail_start:
                found = reference_tail(table, stream)
                if found is None:
                    continue
                magnitude = found
            elif magnitude > inside[layer]:
                level = float(next(stream)) * 2.0**-64
                ratio = magnitude / table.sigma
                value = _core.exp_minus(0.5 * (ratio * ratio))
                if not lower[layer] + height[layer] * level < value:
                    continue
            if negative and magnitude == 0:
                continue
            drawn.append(-magnitude if negative else magnitude)
            break
    return drawn


def reference_tail(table: _core.Ziggurat, stream: "itertools.chain[int]") -> int | None:
    start = 0.5 * (FIRST_EDGE * FIRST_EDGE)
    if not float(next(stream)) * 2.0**-64 * table.height[0] < _core.exp_minus(start):
        return None
    cell = 0
    while (word := next(stream)) == 0:
        cell += 64
        if cell > 1000:
            return None
    cell += (word & -word).bit_length() - 1
    while True:
        high, low = divmod(next(stream) * table.tail_cell, 2**64)
        if low >= 2**64 % table.tail_cell:
            break
    magnitude = table.tail_start + cell * table.tail_cell + high
    ratio = magnitude / table.sigma
    w = max(0.5 * (ratio * ratio) - start - cell * LOG_TWO, 0.0)
    while w > 1:
        if next(stream) >= CHAIN:
            return None
        w -= 1
    return magnitude if float(next(stream)) * 2.0**-64 < _core.exp_minus(w) else None


@pytest.mark.parametrize("scale", [12345678.9, 2.0**48])
def test_ordinary_draws_agree_with_the_reference(scale: float) -> None:
    count = 20_000
    words = np.random.default_rng(9).integers(0, 2**64, 2 * count, np.uint64)
    table = _core.Ziggurat(scale)
    _, drawn = drawn_on_every_set(table, words, count)
    assert drawn == reference_draws(table, words, count)


@pytest.mark.parametrize("seed", range(4))
def test_the_far_tail_agrees_with_the_reference(seed: int) -> None:
    """Words that lead to cells up to 112 and beyond, with zero words and chains at their seam."""
    random = np.random.default_rng(seed)
    table = _core.Ziggurat(2.0**20 * (1 + seed))
    far = int(table.width[0]) - 1  # a proposal of layer 0 that stands for the tail
    first = crafted(0, -(-(far << 52) // table.width[0]), bool(seed % 2))
    chain = [0, CHAIN - 1, CHAIN - 1, CHAIN - 1, CHAIN - 1, CHAIN]
    cells = set()
    for _ in range(1500):
        zeros = int(random.integers(0, 3))
        cell = int(random.integers(0, 64))
        below = [int(word) for word in random.integers(0, 2**64, 2, dtype=np.uint64)]
        below = [int(random.integers(0, 40))] * int(random.integers(0, 2)) + below  # some biased
        links = [chain[pick] for pick in random.integers(0, 5, 4000)]
        links[int(random.integers(1, 400)) :] = [chain[int(random.integers(0, 6))]] * 4000
        rest = [int(word) for word in random.integers(0, 2**64, 200, dtype=np.uint64)]
        stream = [0, *[0] * zeros, 1 << cell, *below, *links[:4000], *rest]
        words = np.array([first, *stream], dtype=np.uint64)
        used, drawn = drawn_on_every_set(table, words, 1)
        try:
            expected = reference_draws(table, words, 1)
        except StopIteration:
            assert used is None
            continue
        assert drawn == expected
        cells.add(int(abs(drawn[0]) - table.tail_start) // int(table.tail_cell))
    assert max(cells) > 60 and len(cells) > 30


def test_output_is_written_in_place_or_not_at_all() -> None:
    table, words = _core.Ziggurat(2.0**20), np.arange(100, dtype=np.uint64) << np.uint64(40)
    wrong: list[Any] = [np.zeros(10, np.int32), np.zeros(10), np.zeros(20, np.int64)[::2]]
    for out in wrong:
        with pytest.raises(TypeError):
            table.fill(words, out)


@every_set
def test_too_few_words_are_reported() -> None:
    table = _core.Ziggurat(2.0**20)
    words = np.full(4, crafted(LAYERS - 1, 2**52 - 1), dtype=np.uint64)  # all need a second word
    out = np.zeros(4, np.int64)
    assert table.fill(words, out) is None
    with pytest.raises(ValueError, match="fewer words"):
        table.fill(words[:3], out)


def test_the_compiled_sampler_has_the_range_that_is_proven() -> None:
    compiled = _core.SIGMA_MIN, _core.SIGMA_MAX
    assert compiled == (sampler.SIGMA_MIN, sampler.SIGMA_MAX)


@pytest.mark.parametrize("sigma", [0.0, 2.0**20 - 1, 2.0**48 + 1, math.nan, math.inf, -1.0])
def test_scales_outside_the_proof_are_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="sigma"):
        _core.Ziggurat(sigma)
    with pytest.raises(InvalidParameter, match="grid"):
        sampler.check_scale(sigma)


SIGMA = 1.7 * 2**21
DRAWS = 4_000_000


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    """Fresh secure noise from several addresses."""
    noise, table = SecureNoise(), _core.Ziggurat(SIGMA)
    addresses = [{"event": 3, "block": block, "count": DRAWS // 8} for block in range(8)]
    return np.stack([noise._integers(table, **address).copy() for address in addresses])


def test_the_moments_are_those_of_a_normal_distribution(drawn: np.ndarray) -> None:
    z = drawn.reshape(-1) / SIGMA
    # Standardised by the exact variances of the sample moments of a standard normal.
    moments = {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96), 6: (15, 10170)}
    for power, (mean, variance) in moments.items():
        score = (np.mean(z**power) - mean) / math.sqrt(variance / z.size)
        assert abs(score) < 8  # beyond 1e-7 even for the heavier-tailed sixth moment


def test_the_distribution_on_the_grid_is_normal(drawn: np.ndarray) -> None:
    edges = np.rint(stats.norm.ppf(np.linspace(0, 1, 1001)[1:-1]) * SIGMA).astype(np.int64)
    counts = np.bincount(np.searchsorted(edges, drawn.reshape(-1)), minlength=1000)
    # searchsorted puts k = edge into the bin below: the bin ends at edge + 1/2.
    upper = stats.norm.cdf((edges + 0.5) / SIGMA)
    expected = np.diff(np.concatenate([[0], upper, [1]])) * drawn.size
    assert stats.chisquare(counts, expected).pvalue > FALSE_POSITIVE_RATE


def test_the_tails_have_their_probabilities(drawn: np.ndarray) -> None:
    """Counts beyond 3 to 5 σ, where the tail's own code draws."""
    for bound in (3.0, 3.8, 3.9, 4.2, 5.0):
        count = int(np.count_nonzero(np.abs(drawn) > bound * SIGMA))
        probability = 2 * stats.norm.sf(bound)
        assert stats.binomtest(count, drawn.size, probability).pvalue > FALSE_POSITIVE_RATE


def test_low_bits_have_no_pattern(drawn: np.ndarray) -> None:
    flat = drawn.reshape(-1)
    for modulus in (2, 3, 16, 257):
        counts = np.bincount(flat % modulus, minlength=modulus)
        assert stats.chisquare(counts).pvalue > FALSE_POSITIVE_RATE


def test_both_signs_are_equally_likely(drawn: np.ndarray) -> None:
    positive = int(np.count_nonzero(drawn > 0))
    nonzero = int(np.count_nonzero(drawn))
    assert stats.binomtest(positive, nonzero).pvalue > FALSE_POSITIVE_RATE


def test_addresses_and_neighbours_are_uncorrelated(drawn: np.ndarray) -> None:
    z = drawn / SIGMA
    bound = stats.norm.isf(FALSE_POSITIVE_RATE / 2)
    for first, second in itertools.combinations(range(len(z)), 2):
        assert abs(np.mean(z[first] * z[second])) * math.sqrt(z.shape[1]) < bound + 1
    flat = z.reshape(-1)
    for lag in (1, 2, 8, 64):
        assert abs(np.mean(flat[:-lag] * flat[lag:])) * math.sqrt(flat.size) < bound + 1


def test_the_sampler_agrees_with_an_exact_sampler() -> None:
    """OpenDP's discrete Gaussian, drawn by exact rational arithmetic, in a two-sample test."""
    dp.enable_features("contrib")
    count = 30_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=SIGMA)([0] * count))
    ours = SecureNoise()._integers(_core.Ziggurat(SIGMA), event=0, block=0, count=count)
    assert stats.ks_2samp(ours, theirs).pvalue > FALSE_POSITIVE_RATE
    both = np.concatenate([ours, theirs])
    bins = np.searchsorted(np.quantile(both, np.linspace(0, 1, 51)[1:-1]), both)
    table = np.stack([np.bincount(part, minlength=50) for part in np.split(bins, [count])])
    assert stats.chi2_contingency(table).pvalue > FALSE_POSITIVE_RATE


def test_a_biased_sampler_would_be_caught(drawn: np.ndarray) -> None:
    """The tests above have power: noise 1 % too small, a missing tail, a missing low bit."""
    shrunk = np.rint(drawn * 0.99).astype(np.int64)
    for test in (
        test_the_moments_are_those_of_a_normal_distribution,
        test_the_distribution_on_the_grid_is_normal,
    ):
        with pytest.raises(AssertionError):
            test(shrunk)
    with pytest.raises(AssertionError):
        test_the_tails_have_their_probabilities(np.clip(drawn, -3.86 * SIGMA, 3.86 * SIGMA))
    even = drawn - drawn % 2
    with pytest.raises(AssertionError):
        test_low_bits_have_no_pattern(even)


def test_a_noise_source_fills_any_count() -> None:
    noise, table = InsecureTestNoise(1), _core.Ziggurat(SIGMA)
    for count in (0, 1, 5, 70_000, 300_000):
        assert noise._integers(table, event=1, block=2, count=count).shape == (count,)
