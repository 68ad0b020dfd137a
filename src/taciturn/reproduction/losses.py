"""Privacy losses along simulated histories: what an observer of a whole run really learns.

The observer sees everything that is released, knows the start, and asks which of two neighbouring
worlds it came from. With Δ_t the difference of the exact gradients of the two worlds along the same
released history and η_t the noise, the privacy loss after a history is

    L = Σ (‖Δ_t‖² + 2⟨Δ_t, η_t⟩) / 2σ_t²,    and    δ(ε) = E[(1 − e^{ε − L})₊]

over histories of the first world is exact (docs/proofs/paper-gap.md). Q = Σ ‖Δ_t‖²/σ_t² sums up one
history; for a mechanism whose sensitivity is bounded at every step √Q is at most its μ, always.
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
from taciturn.mechanisms.extent import Extent
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import NoiseSource
from taciturn.solvers.contract import Seeds
from taciturn.solvers.gradient import GradientSolver
from taciturn.solvers.paper import Centre, PaperDescent, PaperSolver

Line = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """Loss L and Q after each iteration of one simulated history."""

    loss: Line
    squares: Line


def paper_histories(
    solver: PaperSolver,
    ratings: Ratings,
    neighbours: Sequence[Neighbour],
    *,
    changed: bool = False,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> list[History]:
    """Run Algorithm 1 once and return what an observer of all Θ gains about each neighbour.

    The run is in the world of `ratings` or, if `changed`, in that of the only neighbour; either
    way the loss is for the world that was run against the other. The items that neighbours are
    about are followed in double precision: rounded to a grid like the others, one could overshoot
    by its rounding errors, and the algorithm would be charged with more than it leaks itself.
    """
    if changed and len(neighbours) != 1:
        raise InvalidParameter("a changed world is that of one neighbour")
    gate = solver.gate(ratings.shape[0], noise=noise, threads=threads)
    apart = np.isin(ratings.by_user.columns, [each.item for each in neighbours])
    rest = ratings.select(~apart)
    descent = PaperDescent(solver, rest, threads)
    values, state = descent.values(rest), descent.begin(Seeds(seed=seed))
    followed = [_Followed(solver, each, state["items"], changed) for each in neighbours]
    for number in range(solver.iterations):
        measurement = descent.measurement(number, state)
        released = gate.release(measurement, values, share=solver.share(gate))
        scale = gate.noise_scale(measurement.query, solver.share(gate))
        eta = released - measurement.private.users * measurement.query.step
        for item in followed:
            released[item.raters] += item.step(state["users"], eta, scale)
        state = descent.step(number, state, released, measurement.private)
    gate.close()
    return [item.history() for item in followed]


class _Followed:
    """One item in both worlds, the one that is run first.

    Along the same Θ, only its profile and the gradients of its raters differ between the worlds.
    """

    def __init__(
        self, solver: PaperSolver, neighbour: Neighbour, items: Line, changed: bool
    ) -> None:
        if solver.norm_bound != 1 or solver.regularization != 0:
            raise InvalidParameter("histories are for norm_bound 1 and regularization 0")
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
        """Take a step in both worlds; return what the item adds to its raters' gradients."""
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

    def history(self) -> History:
        """Return the sums after each iteration."""
        return History(np.cumsum(self._losses), np.cumsum(self._squares))


def _product(left: Line, right: Line) -> float:
    # Not a matrix product: processes that share processors would wait for BLAS's own threads.
    return float(np.einsum("nk,nk->", left, right))


def _clipped(rows: Line) -> Line:
    clipped: Line = rows / np.maximum(1.0, np.linalg.norm(rows, axis=-1, keepdims=True))
    return clipped


def gradient_history(
    solver: GradientSolver,
    budget: Budget,
    ratings: Ratings,
    neighbour: Neighbour,
    *,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> tuple[History, float]:
    """Run the sound `gradient` once; return what an observer of all its releases gains.

    Beside it, the μ of the events that the run booked.
    """
    descent = solver.descent(ratings, budget)
    gate = Gate(
        budget=budget,
        unit=Unit.VALUE,
        noise=noise,
        threads=threads,
        extent=Extent.of(query for query, _ in solver.asked(descent)),
    )
    values, others = (
        descent.pairs.values(world, descent.grid, descent.middle)
        for world in (ratings, neighbour.ratings)
    )
    state = descent.begin(Seeds(seed=seed))
    losses, squares = [], []
    for number in range(solver.iterations):
        sums = descent.sums(number, *descent.sides(state))
        released = gate.release_together(sums, values, shares=(solver.share, solver.share))
        scales = [gate.noise_scale(query, solver.share) for query in sums.queries]
        loss = square = 0.0
        exact = zip(sums.exact(values, threads), sums.exact(others, threads), strict=True)
        for (here, there), query, public, scale in zip(
            exact, sums.queries, released, scales, strict=True
        ):
            difference = np.multiply(here - there, query.step)
            size = _product(difference, difference)
            drift = _product(difference, public - here * query.step)
            loss += (size + 2 * drift) / (2 * scale**2)
            square += size / scale**2
        losses.append(loss)
        squares.append(square)
        state = descent.step(number, state, released, scales)
    gate.close()
    booked = [event.mu for event in gate.ledger.events if isinstance(event, GaussianRelease)]
    return History(np.cumsum(losses), np.cumsum(squares)), math.hypot(*booked)


def delta_terms(epsilon: float, losses: Line) -> Line:
    """Return the terms whose mean is δ(ε), one for each loss; they lie in [0, 1]."""
    terms: Line = -np.expm1(np.minimum(0.0, epsilon - losses))
    return terms


def mean_lower(terms: Line, confidence: float) -> float:
    """Return a lower bound on the expectation of independent terms in [0, 1].

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
    """Return KL between two coins, the second with a smaller chance."""
    if expected <= 0:
        return math.inf if mean > 0 else 0.0
    total = mean * math.log(mean / expected) if mean > 0 else 0.0
    if mean < 1:
        total += (1 - mean) * math.log((1 - mean) / (1 - expected))
    return total
