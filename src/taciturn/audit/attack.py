"""`taciturn audit attack`: what somebody who has a release infers about single ratings.

Targets are ratings that coins decide, as in an audit with one run, between two given values. The
attacker has the release, all ratings but the targets, and trainings of their own on data like it,
whose predictions for a target show what it would be without knowing. A target that is predicted
higher than there is guessed to have the higher value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from taciturn._internal import validate
from taciturn.accounting import gaussian
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease, Rows
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.audit import bounds
from taciturn.audit.one_run import Canaries, Coins, Scores, toss
from taciturn.audit.verdict import Claim, Verdict, claim_of, claim_to_dict, exceeded
from taciturn.scale import Scale
from taciturn.solvers.contract import Session
from taciturn.solvers.gradient import VALUE_LEVELS
from taciturn.solvers.solver import Solver

FALSE_POSITIVES = 0.01
"""The rate of false alarms at which an attacker's hits are counted."""

SHADOWS = 2

EXISTENCE = {
    Unit.VALUE: "not protected: who rated what is public under unit value",
    Unit.RATING: "what is attacked here: whether a rating is there",
}
"""What an attack says of whether a rating exists."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Attack:
    """The result: how often the attacker was right, and how often anybody could be at most.

    `mu` is the Gaussian-DP parameter between the two values of a target; `shadows` counts pairs of
    trainings of the attacker's own.
    """

    solver: Solver
    claim: Claim
    targets: Canaries
    shadows: int
    confidence: float
    mu: float
    coins: Coins
    scores: Scores

    @property
    def existence(self) -> str:
        """What can be said of whether a rating exists."""
        return EXISTENCE[Unit.RATING if self.targets.low is None else Unit.VALUE]

    @property
    def guessed(self) -> Coins:
        """The attacker's guesses: above or below the middle of what they expect."""
        return self.scores > 0

    @property
    def advantage(self) -> float:
        """Rate of hits minus rate of false alarms."""
        hits, alarms = self.guessed[self.coins], self.guessed[~self.coins]
        return float(hits.mean() - alarms.mean()) if hits.size and alarms.size else 0.0

    @property
    def advantage_error(self) -> float:
        """Twice its standard error, at most."""
        return 2 / math.sqrt(max(1, self.coins.size))

    @property
    def advantage_bound(self) -> float:
        """The most that any attacker can have in expectation: 2Φ(μ/2) − 1."""
        return float(2 * ndtr(self.mu / 2) - 1)

    @property
    def hits(self) -> float | None:
        """Rate of hits at a rate of false alarms of 1 %; None if there are too few targets."""
        tails, heads = self.scores[~self.coins], self.scores[self.coins]
        allowed = math.floor(FALSE_POSITIVES * tails.size)
        if allowed < 1 or not heads.size:
            return None
        return float((heads > np.sort(tails)[-1 - allowed]).mean())

    @property
    def hits_error(self) -> float | None:
        """Twice the standard error of the rate of hits, the threshold's own error included."""
        if self.hits is None:
            return None
        tails, heads = int((~self.coins).sum()), int(self.coins.sum())
        rate = min(max(self.hits, 1 / heads), 1 - 1 / heads)
        # How many more hits one more per cent of false alarms brings, for a Gaussian curve.
        slope = math.exp((ndtri(FALSE_POSITIVES) ** 2 - ndtri(rate) ** 2) / 2)
        alarms = FALSE_POSITIVES * (1 - FALSE_POSITIVES) / tails
        return 2 * math.sqrt(rate * (1 - rate) / heads + slope**2 * alarms)

    @property
    def hits_bound(self) -> float:
        """The most that any attacker can have in expectation: Φ(Φ⁻¹(FPR) + μ)."""
        return gaussian.true_positive_rate(FALSE_POSITIVES, self.mu)

    @property
    def correct(self) -> int:
        """How many guesses, one for each target, were correct."""
        return int((self.guessed == self.coins).sum())

    @property
    def lower_bound_mu(self) -> float:
        """What the guesses prove about the μ between the two values."""
        count = self.coins.size
        return bounds.one_run_mu(count, count, self.correct, confidence=self.confidence)

    def _epsilon(self, mu: float) -> float:
        return gaussian.epsilon(self.claim.delta, mu) if mu > 0 else 0.0

    @property
    def mu_most(self) -> float:
        """The largest bound that so many guesses can give, all correct."""
        count = self.coins.size
        return bounds.one_run_mu(count, count, count, confidence=self.confidence)

    @property
    def reasons(self) -> list[str]:
        """What the verdict follows from, if it is that the claim is violated."""
        return exceeded(self.lower_bound_mu, self.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if so many correct guesses are too unlikely under the claimed curve."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return everything but coins and scores as JSON types."""
        return {
            "audit": "attack",
            "solver": self.solver.name,
            "settings": self.solver.settings,
            **claim_to_dict(self.claim),
            "values": [self.targets.low, self.targets.high],
            "mu_between_values": self.mu,
            "targets": self.coins.size,
            "shadows": self.shadows,
            "advantage": self.advantage,
            "advantage_error": self.advantage_error,
            "advantage_bound": self.advantage_bound,
            "false_positive_rate": FALSE_POSITIVES,
            "true_positive_rate": self.hits,
            "true_positive_rate_error": self.hits_error,
            "true_positive_rate_bound": self.hits_bound,
            "existence": self.existence,
            "lower_bound": bounds.one_run_epsilon(
                self.coins.size,
                self.coins.size,
                self.correct,
                delta=self.claim.delta,
                confidence=self.confidence,
            ),
            "lower_bound_mu": self.lower_bound_mu,
            "lower_bound_mu_most": self.mu_most,
            "lower_bound_gaussian": self._epsilon(self.lower_bound_mu),
            "confidence": self.confidence,
            "runs": 1,
            "verdict": self.verdict,
            "reasons": self.reasons,
        }


def attack(
    solver: Solver,
    budget: Budget | None,
    targets: Canaries,
    *,
    shadows: int = SHADOWS,
    confidence: float = 0.95,
    session: Session | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Attack:
    """Train, release, and attack. Reads private data if ratings are: the owner's own view."""
    validate.positive_integer("shadows", shadows, "2 are usual")
    bounds.check_confidence(confidence)
    session = session or Session()
    count = targets.places.size
    coins = toss(count)
    # In pairs with opposite coins, so that a target itself cancels out.
    tosses = [coins]
    for _ in range(shadows):
        own = toss(count)
        tosses += [own, ~own]
    fits = []
    for number, shown in enumerate(tosses):
        progress(number, len(tosses))
        fits.append(solver.fit(targets.world(shown), budget, session))
    progress(len(tosses), len(tosses))
    # Items that are never released are those of the attacker's own training.
    released = fits[0].model
    if released.items is None:
        released = replace(released, items=fits[1].private_items)
    models = [released, *(fit.owner_model for fit in fits[1:])]
    guesses = [
        model.score_rows(targets.users, targets.items).astype(np.float64) for model in models
    ]
    return Attack(
        solver=solver,
        claim=claim_of(fits[0].ledger, solver, budget),
        targets=targets,
        shadows=shadows,
        confidence=confidence,
        mu=mu_between(fits[0].ledger, targets.ratings.scale, targets.low, targets.high),
        coins=coins,
        scores=guesses[0] - np.mean(guesses[1:], axis=0),
    )


def mu_between(ledger: Ledger, scale: Scale, low: float | None, high: float) -> float:
    """Return the μ between two values of one rating, or between one and none.

    A table for items or users moves by at most their distance, or by its sensitivity if that is
    less: in ratings' own units, since features have length 1 at most. For tables whose sensitivity
    is the range of the scale, it is μ·distance/range. A total may move by all of its sensitivity.
    """
    if low is None:
        return ledger.spend().mu
    # Solvers round values to a grid of at least so many steps, a power of two apart.
    step = 2.0 ** math.floor(math.log2(scale.range / VALUE_LEVELS))
    ends = scale.low, scale.high, (scale.low + scale.high) / 2
    on_grid = all((value / step).is_integer() for value in (low, high, *ends))
    distance = high - low + (0.0 if on_grid else step)
    squares = [
        (event.mu * min(1.0, distance / event.sensitivity)) ** 2
        if event.rows is not Rows.TOTAL
        else event.mu**2
        for event in ledger.events
        if isinstance(event, GaussianRelease)
    ]
    return math.sqrt(math.fsum(squares))
