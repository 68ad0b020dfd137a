"""Privacy losses along simulated transcripts: the evidence that an observer gains from a run.

The observer sees the whole transcript, knows the initial profiles, and decides between two
neighbouring datasets. Let Δ_t be the difference of their exact gradients along the same transcript
and η_t the noise. The privacy loss after a transcript is

    L = Σ (‖Δ_t‖² + 2⟨Δ_t, η_t⟩) / 2σ_t²,    and    δ(ε) = E[(1 − e^{ε − L})₊]

over transcripts of the first dataset is exact (docs/proofs/paper-gap.md). Q = Σ ‖Δ_t‖²/σ_t²
summarises one transcript. If the sensitivity of every step is bounded, √Q never exceeds μ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.units import Unit
from taciturn.audit.neighbours import Neighbour
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.query import Released
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.values import Centre
from taciturn.solvers.contract import PublicFacts, Seeds, Session
from taciturn.solvers.gradient import GradientSolver
from taciturn.solvers.loop import Training
from taciturn.solvers.paper import PaperAlgorithm, PaperSolver, PaperState

Line = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Privacy loss L and Q after each iteration of one simulated run."""

    loss: Line
    squares: Line


def paper_losses(
    solver: PaperSolver,
    ratings: Ratings,
    neighbours: Sequence[Neighbour],
    *,
    changed: bool = False,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> list[PrivacyLoss]:
    """Run Algorithm 1 once; privacy loss towards each neighbour for an observer of all Θ.

    The run uses `ratings` or, if `changed`, the ratings of the only neighbour. The loss is for the
    dataset of the run against the other. The items that differ between neighbours are tracked in
    double precision: in floats like the others, they could overshoot because of rounding, and the
    measured loss would exceed that of the algorithm itself.
    """
    if changed and len(neighbours) != 1:
        raise InvalidParameter("changed=True needs exactly one neighbour")
    apart = np.isin(ratings.by_user.columns, [each.item for each in neighbours])
    rest = ratings.select(~apart)
    algorithm = _TrackedAlgorithm(solver, rest, neighbours, changed, threads)
    session = Session(seed=seed, threads=threads, noise=noise)
    training = Training(algorithm, LocalExecutor(rest, threads), session)
    training.run()
    training.finish()
    return [item.loss() for item in algorithm.tracked]


class _TrackedAlgorithm(PaperAlgorithm):
    """Algorithm 1 on all but some items, which are tracked in two neighbouring datasets."""

    def __init__(
        self,
        solver: PaperSolver,
        rest: Ratings,
        neighbours: Sequence[Neighbour],
        changed: bool,
        threads: int | None,
    ) -> None:
        super().__init__(solver, PublicFacts.of(rest, Unit.VALUE), threads=threads)
        self._neighbours, self._changed = neighbours, changed
        self.tracked: list[_TrackedItem] = []

    def initial_state(self, seeds: Seeds) -> PaperState:
        state = super().initial_state(seeds)
        self.tracked = [
            _TrackedItem(self._solver, each, state.items, self._changed)
            for each in self._neighbours
        ]
        return state

    def update(self, step: int, state: PaperState, released: Released) -> PaperState:
        """Take a step, adding the tracked items to the gradients of their raters."""
        (table,), (scale,) = released.tables, released.noise_scales
        noise = table - released.private.users * released.spec.queries[0].step
        for item in self.tracked:
            table[item.raters] += item.step(state.users, noise, scale)
        return super().update(step, state, released)


class _TrackedItem:
    """One item in both neighbouring datasets; the dataset of the run comes first.

    Along the same Θ, only its profile and the gradients of its raters differ between the two.
    """

    def __init__(
        self, solver: PaperSolver, neighbour: Neighbour, items: Line, changed: bool
    ) -> None:
        if solver.norm_bound != 1 or solver.regularization != 0:
            raise InvalidParameter("privacy losses need norm_bound = 1 and regularization = 0")
        self.raters = neighbour.raters
        parts = neighbour.parts[::-1] if changed else neighbour.parts
        self._ratings = [part.values().astype(np.float64) for part in parts]
        if solver.centre is Centre.ITEM_MEAN:
            self._ratings = [values - values.mean() for values in self._ratings]
        self._profiles = [items[neighbour.item].copy() for _ in parts]
        self._step_size = solver.step_size
        self._losses: list[float] = []
        self._squares: list[float] = []

    def step(self, users: Line, noise: Line, scale: float) -> Line:
        """Take a step in both datasets; the item's terms in the gradients of its raters."""
        users, noise = users[self.raters], noise[self.raters]
        features = _clipped(users)
        gradients: list[Line] = []
        for place, values in enumerate(self._ratings):
            profile = self._profiles[place]
            errors = np.einsum("nk,k->n", users, profile) - values
            gradients.append(errors[:, None] * _clipped(profile))
            pull = np.einsum("n,nk->k", errors, features)
            self._profiles[place] = profile - self._step_size * pull
        difference = gradients[0] - gradients[1]
        square, drift = _product(difference, difference), _product(difference, noise)
        self._losses.append((square + 2 * drift) / (2 * scale**2))
        self._squares.append(square / scale**2)
        return gradients[0]

    def loss(self) -> PrivacyLoss:
        """Cumulative sums after each iteration."""
        return PrivacyLoss(np.cumsum(self._losses), np.cumsum(self._squares))


def _product(left: Line, right: Line) -> float:
    # Not a matrix product: parallel processes would wait for the threads of BLAS.
    return float(np.einsum("nk,nk->", left, right))


def _clipped(rows: Line) -> Line:
    clipped: Line = rows / np.maximum(1.0, np.linalg.norm(rows, axis=-1, keepdims=True))
    return clipped


def gradient_loss(
    solver: GradientSolver,
    budget: Budget,
    ratings: Ratings,
    neighbour: Neighbour,
    *,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> tuple[PrivacyLoss, float]:
    """Run `gradient` once: privacy loss for an observer of all releases, and the recorded μ.

    The recorded μ composes the events in the ledger of the run.
    """
    algorithm = solver.algorithm(PublicFacts.of(ratings, Unit.VALUE), budget, threads)
    executors = [LocalExecutor(each, threads) for each in (ratings, neighbour.ratings)]
    session = Session(seed=seed, threads=threads, noise=noise)
    training = Training(algorithm, executors[0], session)
    losses, squares = [], []
    for done in training.steps():
        spec, loss, square = done.released.spec, 0.0, 0.0
        here, there = (executor.answer(spec).tables for executor in executors)
        for one, two, query, public, scale in zip(
            here,
            there,
            spec.queries,
            done.released.tables,
            done.released.noise_scales,
            strict=True,
        ):
            difference = np.multiply(one - two, query.step)
            size = _product(difference, difference)
            drift = _product(difference, public - one * query.step)
            loss += (size + 2 * drift) / (2 * scale**2)
            square += size / scale**2
        losses.append(loss)
        squares.append(square)
    events = training.finish().events
    recorded = [event.mu for event in events if isinstance(event, GaussianRelease)]
    return PrivacyLoss(np.cumsum(losses), np.cumsum(squares)), math.hypot(*recorded)


def delta_terms(epsilon: float, losses: Line) -> Line:
    """Terms in [0, 1] whose mean is δ(ε), one for each loss."""
    terms: Line = -np.expm1(np.minimum(0.0, epsilon - losses))
    return terms


def mean_lower(terms: Line, confidence: float) -> float:
    """Lower bound on the expectation of independent terms in [0, 1].

    Holds with probability at least `confidence`: P(mean ≥ m) ≤ e^{−n·KL(m ‖ p)} for every true
    expectation p ≤ m (Hoeffding 1963, theorem 1), solved for p, rounded down.
    """
    mean, limit = float(terms.mean()), -math.log1p(-confidence) / terms.size
    low, high = 0.0, mean
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _divergence(mean, middle) > limit else (low, middle)
    return low


def _divergence(mean: float, expected: float) -> float:
    """KL divergence between Bernoulli distributions; `expected` is at most `mean`."""
    if expected <= 0:
        return math.inf if mean > 0 else 0.0
    total = mean * math.log(mean / expected) if mean > 0 else 0.0
    if mean < 1:
        total += (1 - mean) * math.log((1 - mean) / (1 - expected))
    return total
