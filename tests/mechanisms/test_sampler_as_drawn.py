"""Exact probabilities of the compiled sampler, observed one decision at a time.

`Observed` feeds chosen words to the compiled loop and observes its decisions: the words it rejects,
the words it draws instead, the threshold of each comparison. The probabilities of layers and of
single integers follow from these decisions in rational arithmetic, without the theory of the proof.
They must lie within the γ that a ledger charges.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import mpmath
import numpy as np
import pytest
from scipy import stats

from taciturn import _core
from taciturn.accounting import sampler
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import SecureNoise
from taciturn.mechanisms.query import BoundedQuery
from taciturn.solvers.als.solver import AlsSolver
from tests.instruction_sets import SETS, using

LAYERS = 512
SCALES = [2.0**20, 1234567.891, 1.9 * 2**27, math.pi * 2**30, 2.0**34, 1.37 * 2**41, 2.0**48]
WORD, UNIFORM = 2**64, 2**52
FALSE_POSITIVE_RATE = 1e-9


def word(layer: int, uniform: int, negative: bool = False) -> int:
    return (int(negative) << 63) | (layer << 52) | uniform


class Observed:
    """The compiled sampler of one scale and instruction set, drawing an integer from chosen words.

    Vectors take up to eight draws at a time: seven others, which need one word each, stand around
    the one that is observed, which comes first, in the middle or last.
    """

    def __init__(self, sigma: float, name: str = SETS[0], place: int = 0) -> None:
        self.table, self.name = _core.Ziggurat(sigma), name
        self.widths = [int(width) for width in self.table.width]
        self._place, self._out = place, np.zeros(1 if name == "portable" else 8, np.int64)
        # Plain in layer 1: a magnitude well inside, a fraction that biases nothing.
        usual = itertools.count(UNIFORM // 3)
        plain = next(each for each in usual if each * self.widths[1] % UNIFORM >= self.widths[1])
        self._others = [word(1, plain)] * (self._out.size - 1)

    def draw(self, *words: int) -> tuple[int, int] | None:
        """Integer drawn and the number of words used; None if there were too few."""
        first = [*self._others[: self._place], words[0], *self._others[self._place :]]
        given = np.array([*first, *words[1:]], np.uint64)
        with using(self.name):
            used = self.table.fill(given, self._out)
        place = min(self._place, self._out.size - 1)
        return None if used is None else (int(self._out[place]), int(used) - len(self._others))

    def threshold(self, *before: int, after: tuple[int, ...] = ()) -> int:
        """Number of values of the next word that lead to a draw; the smaller ones do."""
        low, high = 0, WORD
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.takes(*before, middle, *after) else (low, middle)
        return low

    def takes(self, *words: int) -> bool:
        """True if these words, all of them, end in a draw."""
        drawn = self.draw(*words)
        return drawn is not None and drawn[1] == len(words)

    def uniform_for(self, layer: int, magnitude: int) -> int:
        """A uniform that proposes the magnitude and is not rejected."""
        width = self.widths[layer]
        return -(-(magnitude * UNIFORM + UNIFORM % width) // width)

    def redraws_within(self, layer: int) -> bool:
        """True if a uniform that would bias its layer is drawn again in the same layer.

        The rejected word is positive, the next one negative and of another layer.
        """
        other = (layer + LAYERS // 2) % LAYERS
        both = self.widths[layer], self.widths[other]
        uniform = next(
            each
            for each in itertools.count(UNIFORM // 1000)
            if all(each * width % UNIFORM >= width for width in both)
        )
        within, elsewhere = (uniform * width // UNIFORM for width in both)
        # Near the top of the curve a level is needed too: the lowest is below it.
        drawn = self.draw(word(layer, 0), word(other, uniform, negative=True), 0)
        assert drawn is not None and drawn[0] in (within, -elsewhere)
        return drawn[0] == within

    @cached_property
    def chances(self) -> list[Fraction]:
        """Layer probabilities, observed once."""
        return self.layer_probabilities()

    def layer_probabilities(self) -> list[Fraction]:
        """Probability of each layer, given that the proposal is not rejected."""
        chances = []
        for layer, width in enumerate(self.widths):
            chance = Fraction(1, LAYERS)
            if UNIFORM % width and not self.redraws_within(layer):
                chance *= 1 - Fraction(UNIFORM % width, UNIFORM)
            chances.append(chance)
        total = sum(chances)
        return [chance / total for chance in chances]

    def proposals(self, layer: int, magnitude: int) -> int:
        """Number of uniforms that propose a magnitude and are not rejected."""
        width = self.widths[layer]
        first = magnitude * UNIFORM + UNIFORM % width
        return -(-(magnitude + 1) * UNIFORM // width) - -(-first // width)

    def mass(self, magnitude: int) -> Fraction:
        """Probability that one attempt proposes and accepts +magnitude."""
        table, total = self.table, Fraction(0)
        for layer, chance in enumerate(self.chances):
            width = self.widths[layer]
            if magnitude >= (table.tail_start if layer == 0 else width):
                continue
            first = word(layer, self.uniform_for(layer, magnitude))
            accept = Fraction(1)
            if self.draw(first) != (magnitude, 1):
                accept = Fraction(self.threshold(first), WORD)
            accepted = width * (UNIFORM // width)
            total += chance / 2 * Fraction(self.proposals(layer, magnitude), accepted) * accept
        return total + (self.tail_mass(magnitude) if magnitude >= table.tail_start else 0)

    def tail_mass(self, magnitude: int) -> Fraction:
        table, cell_size = self.table, int(self.table.tail_cell)
        cell, place = divmod(magnitude - int(table.tail_start), cell_size)
        first = word(0, self.uniform_for(0, int(table.tail_start)))
        zeros, place_of_bit = divmod(cell, 64)
        cell_words = (*[0] * zeros, 1 << place_of_bit)
        # Lemire's method with 64 bits, in the words that choose a place within the cell.
        chosen = -(-(place * WORD + WORD % cell_size) // cell_size)
        links = self.links(first, *cell_words, chosen)
        survive = (*cell_words, chosen, *[0] * links)
        assert self.draw(first, 0, *survive) == (magnitude, len(survive) + 2)
        accept = Fraction(self.threshold(first, after=survive), WORD)
        for link in range(links):
            done = (0, *cell_words, chosen, *[0] * link)
            accept *= Fraction(self.threshold(first, *done, after=(0,) * (links - link - 1)), WORD)
        proposed = Fraction(self.widths[0] - int(table.tail_start), self.widths[0])
        return self.chances[0] / 2 * proposed * accept / cell_size / (2 << cell)

    def links(self, first: int, *words: int) -> int:
        """Number of words that decide whether a proposal in the tail is accepted."""
        drawn = self.draw(first, 0, *words, *[0] * 400)
        assert drawn is not None
        return drawn[1] - len(words) - 2


@pytest.fixture(
    params=[(sigma, name) for sigma in SCALES for name in SETS],
    ids=lambda both: f"{both[0]:.3g}-{both[1]}",
    scope="module",
)
def observed(request: pytest.FixtureRequest) -> Observed:
    sigma, name = request.param
    return Observed(sigma, name, place=0 if name == "portable" else SCALES.index(sigma) % 8)


def test_every_layer_is_drawn_equally_often(observed: Observed) -> None:
    worst = max(abs(chance * LAYERS - 1) for chance in observed.chances)
    assert worst <= sampler.relative_error(observed.table.sigma), float(worst)


@pytest.mark.parametrize("name", SETS[:-1])
@pytest.mark.parametrize("place", range(8))
def test_every_lane_of_vectors_agrees_with_the_portable_path(name: str, place: int) -> None:
    """Zeros of both signs, the ends of plain acceptance, biased uniforms."""
    vector, portable = (Observed(1.37 * 2**41, each, place) for each in (name, "portable"))
    for layer in range(0, LAYERS, 5):
        inside, width = int(vector.table.inside[layer]), vector.widths[layer]
        magnitudes = {0, 1, max(inside, 0), inside + 1, width - 1}
        uniforms = {0, 1, 2, *(vector.uniform_for(layer, each) for each in magnitudes)}
        for uniform in uniforms:
            for negative in (False, True):
                words = (word(layer, uniform, negative), word(9, 2**50 + 12345), 0, 0)
                assert vector.draw(*words) == portable.draw(*words)


def test_uniforms_are_rejected_just_below_the_bound(observed: Observed) -> None:
    """Exactly the 2^52 mod W uniforms u with u·W mod 2^52 below 2^52 mod W are rejected."""
    for layer in (*range(0, LAYERS, 17), LAYERS - 1):
        width = observed.widths[layer]
        bound, common = UNIFORM % width, math.gcd(width, UNIFORM)
        if bound == 0:
            continue
        assert bound % common == 0  # so the remainders below it are taken equally often
        inverse = pow(width // common, -1, UNIFORM // common)
        last, first = (
            (remainder // common * inverse) % (UNIFORM // common)
            for remainder in (bound - common, bound)
        )
        for uniform, is_accepted in ((last, False), (first, True)):
            assert (uniform * width % UNIFORM < bound) != is_accepted
            magnitude = uniform * width >> 52
            if magnitude == 0 or magnitude > observed.table.inside[layer]:
                continue
            drawn = observed.draw(word(layer, uniform))
            assert drawn == ((magnitude, 1) if is_accepted else None)
        for magnitude in (0, 1, width // 2, width - 1):
            assert observed.proposals(layer, magnitude) == UNIFORM // width


def test_the_sampler_starts_anew_after_a_rejection(observed: Observed) -> None:
    """After a negative zero, a level above the curve and a rejection in the tail."""
    top = int(observed.table.width[300]) - 1
    tail = word(0, observed.uniform_for(0, int(observed.table.tail_start)))
    again = word(500, observed.uniform_for(500, 777))
    for rejected in (
        (word(7, observed.uniform_for(7, 0), negative=True),),
        (word(300, observed.uniform_for(300, top), negative=True), WORD - 1),
        (tail, WORD - 1),
        (tail, 0, 1, WORD - 1, WORD - 1),
    ):
        assert observed.draw(*rejected) is None
        assert observed.draw(*rejected, again) == (777, len(rejected) + 1)


def test_a_place_in_the_tail_is_drawn_again_within_its_cell(observed: Observed) -> None:
    cell_size, start = int(observed.table.tail_cell), int(observed.table.tail_start)
    tail = word(0, observed.uniform_for(0, start))
    assert WORD % cell_size  # some words are rejected, the word 0 among them
    chosen = -(-(5 * WORD + WORD % cell_size) // cell_size)
    for cell in (0, 3):
        links = observed.links(tail, 1 << cell, chosen)
        drawn = observed.draw(tail, 0, 1 << cell, 0, chosen, *[0] * links)
        assert drawn == (start + cell * cell_size + 5, 5 + links)


@pytest.mark.slow
def test_point_masses_are_within_the_error_that_is_charged(observed: Observed) -> None:
    """Integers at the seams of layers and cells, and at random up to 24σ."""
    table, random = observed.table, np.random.default_rng(3)
    sigma, start, cell = float(table.sigma), int(table.tail_start), int(table.tail_cell)
    points = {1, start - 1, start, start + cell - 1, start + cell, start + 50 * cell}
    points |= {observed.widths[layer] - d for layer in (1, 2, 200, 511) for d in (0, 1)}
    points |= {max(int(table.inside[layer]), 0) + d for layer in (1, 200, 510) for d in (0, 1)}
    points |= {int(x * sigma) for x in (*random.uniform(0, 24, 30), *random.uniform(0, 4, 30))}
    ratios = {}
    with mpmath.workdps(60):
        width = mpmath.mpf(sigma) * mpmath.sqrt(2)
        for k in points:
            ends = [(mpmath.mpf(2 * k) + side) / (2 * width) for side in (-1, 1)]
            ideal = (mpmath.erfc(ends[0]) - mpmath.erfc(ends[1])) / 2
            mass = observed.mass(k)
            ratios[k] = mpmath.mpf(mass.numerator) / mass.denominator / ideal
        # Every ratio has the probability of acceptance as a factor; between two, it cancels.
        difference = float(max(ratios.values()) / min(ratios.values()) - 1)
    assert difference <= 2 * sampler.relative_error(sigma), difference


LARGE = [2.0**44, 2.0**48]


@pytest.mark.parametrize("sigma", LARGE)
def test_layers_are_drawn_with_their_probabilities(sigma: float) -> None:
    """χ² over the magnitudes between the ends of layers, where large scales used to be biased."""
    table, count = _core.Ziggurat(sigma), 4_000_000
    noise = SecureNoise()
    drawn = np.concatenate(
        [noise._integers(table, event=0, block=each, count=count // 8).copy() for each in range(8)]
    )
    ends = np.array(sorted({int(width) for width in table.width[1:]}), dtype=np.int64)
    counts = np.bincount(np.searchsorted(ends, np.abs(drawn), side="right"))
    below = 2 * stats.norm.cdf((ends - 0.5) / sigma) - 1
    expected = np.diff(np.concatenate([[0], below, [1]])) * drawn.size
    assert stats.chisquare(counts, expected).pvalue > FALSE_POSITIVE_RATE
    square = np.mean((drawn / sigma) ** 2)
    assert abs(square - 1) < stats.norm.isf(FALSE_POSITIVE_RATE / 2) * math.sqrt(2 / count)


@pytest.mark.parametrize("sigma", [2.0**20, *LARGE])
def test_the_tail_has_the_shape_of_a_normal_distribution(sigma: float) -> None:
    """χ² over cells and their halves, of draws whose first word proposes the tail."""
    table, count = _core.Ziggurat(sigma), 400_000
    start, cell, width = int(table.tail_start), int(table.tail_cell), int(table.width[0])
    secure = SecureNoise()
    words = secure._words(0, 0, 12 * count).copy()
    tails = np.uint64(-(-start * UNIFORM // width) + 2**20)
    words[:count] = (words[:count] & np.uint64(1 << 63)) | tails
    drawn = np.zeros(count, np.int64)
    assert table.fill(words, drawn) is not None
    far = np.abs(drawn[np.abs(drawn) >= start])
    assert far.size > count / 3
    ends = np.array([start + half * cell // 2 for half in range(1, 17)])
    counts = np.bincount(np.searchsorted(ends, far, side="right"), minlength=ends.size + 1)
    beyond = stats.norm.sf((np.concatenate([[start], ends]) - 0.5) / sigma)
    expected = -np.diff(np.append(beyond, 0)) / beyond[0] * far.size
    assert stats.chisquare(counts, expected).pvalue > FALSE_POSITIVE_RATE
    signs = int(np.count_nonzero(drawn > 0))
    assert stats.binomtest(signs, count).pvalue > FALSE_POSITIVE_RATE


def test_the_observer_sees_a_layer_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a rejection drew a new layer, the observed error would be far above γ."""
    observed = Observed(2.0**48)
    monkeypatch.setattr(Observed, "redraws_within", lambda self, layer: False)
    chances = observed.layer_probabilities()
    assert max(abs(chance * LAYERS - 1) for chance in chances) > 0.15
    smaller = Observed(2.0**34).layer_probabilities()
    assert 1e-5 < max(abs(chance * LAYERS - 1) for chance in smaller) < 2e-5


@pytest.mark.slow
def test_a_layer_drawn_anew_would_cost_privacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proven ε of a training under `value` if a rejection drew a new layer."""
    monkeypatch.setattr(Observed, "redraws_within", lambda self, layer: False)
    scales: list[float] = []
    original = Gate.plan

    def plan(self: Gate, query: BoundedQuery, share: float) -> GaussianRelease:
        event = original(self, query, share)
        scales.append(event.noise_scale / query.step)
        return event

    monkeypatch.setattr(Gate, "plan", plan)
    ratings, found = load("synthetic:100k"), []
    for epsilon in (1.0, 0.01):
        scales.clear()
        solver = AlsSolver(unit=Unit.VALUE, iterations=8)  # with factors at either budget
        events = solver.plan(ratings, Budget.from_epsilon(epsilon, 1e-5))
        noised = [event for event in events if isinstance(event, GaussianRelease)]
        true = [
            replace(event, sampler_error=layer_error(scale))
            for event, scale in zip(noised, scales, strict=True)
        ]
        found.append(Certificate.from_ledger(Ledger(true), 1e-5).epsilon)
    assert found == [pytest.approx(1.002, abs=1e-3), pytest.approx(0.126, abs=0.01)]


def layer_error(sigma: float) -> float:
    chances = Observed(sigma).layer_probabilities()
    return float(max(abs(chance * LAYERS - 1) for chance in chances))
