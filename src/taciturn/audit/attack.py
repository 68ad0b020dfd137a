"""`taciturn audit attack`: inference of single ratings from a release.

As in an audit with one run, fair coins set each target rating to one of two given values. The
attacker has the release, all ratings except the targets, and shadow models trained on the same
data with other coins. The shadow models give a baseline prediction for each target. If the release
predicts a target above its baseline, the attacker guesses the higher value.
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
from taciturn.solvers.entry import SUM_OF_RATINGS
from taciturn.solvers.gradient import VALUE_LEVELS
from taciturn.solvers.solver import Solver

FALSE_POSITIVE_RATE = 0.01
"""False-positive rate at which the true-positive rate is reported."""

SHADOWS = 2
"""Default number of pairs of shadow models."""

EXISTENCE = {
    Unit.VALUE: "not protected: the rating pattern is public under unit value",
    Unit.RATING: "under attack: the attacker guesses whether a rating exists",
}
"""Statement about the existence of a rating, by privacy unit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Attack:
    """Result of an attack: the attacker's success rates and their upper bounds.

    `mu` is the Gaussian-DP parameter between the two values of a target. `shadows` is the number of
    pairs of shadow models.
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
        """Statement about the existence of a rating under the claimed unit."""
        return EXISTENCE[Unit.RATING if self.targets.low is None else Unit.VALUE]

    @property
    def guessed(self) -> Coins:
        """The attacker's guesses: True where the prediction exceeds its baseline."""
        return self.scores > 0

    @property
    def advantage(self) -> float:
        """True-positive rate minus false-positive rate."""
        heads, tails = self.guessed[self.coins], self.guessed[~self.coins]
        return float(heads.mean() - tails.mean()) if heads.size and tails.size else 0.0

    @property
    def advantage_error(self) -> float:
        """Upper bound on twice the standard error of the advantage."""
        return 2 / math.sqrt(max(1, self.coins.size))

    @property
    def advantage_bound(self) -> float:
        """Maximum expected advantage of any attacker: 2Φ(μ/2) − 1."""
        return float(2 * ndtr(self.mu / 2) - 1)

    @property
    def true_positive_rate(self) -> float | None:
        """True-positive rate at a false-positive rate of 1%; None if there are too few targets."""
        tails, heads = self.scores[~self.coins], self.scores[self.coins]
        allowed = math.floor(FALSE_POSITIVE_RATE * tails.size)
        if allowed < 1 or not heads.size:
            return None
        return float((heads > np.sort(tails)[-1 - allowed]).mean())

    @property
    def true_positive_rate_error(self) -> float | None:
        """Twice the standard error of the true-positive rate, including the threshold's error."""
        if self.true_positive_rate is None:
            return None
        tails, heads = int((~self.coins).sum()), int(self.coins.sum())
        rate = min(max(self.true_positive_rate, 1 / heads), 1 - 1 / heads)
        # Slope of a Gaussian ROC curve at this point.
        slope = math.exp((ndtri(FALSE_POSITIVE_RATE) ** 2 - ndtri(rate) ** 2) / 2)
        variance = FALSE_POSITIVE_RATE * (1 - FALSE_POSITIVE_RATE) / tails
        return 2 * math.sqrt(rate * (1 - rate) / heads + slope**2 * variance)

    @property
    def true_positive_rate_bound(self) -> float:
        """Maximum expected true-positive rate of any attacker: Φ(Φ⁻¹(FPR) + μ)."""
        return gaussian.true_positive_rate(FALSE_POSITIVE_RATE, self.mu)

    @property
    def correct(self) -> int:
        """Number of correct guesses; there is one guess per target."""
        return int((self.guessed == self.coins).sum())

    @property
    def lower_bound_mu(self) -> float:
        """Lower bound on the μ between the two values, from all guesses."""
        count = self.coins.size
        return bounds.one_run_mu(count, count, self.correct, confidence=self.confidence)

    def _epsilon(self, mu: float) -> float:
        return gaussian.epsilon(self.claim.delta, mu) if mu > 0 else 0.0

    @property
    def mu_most(self) -> float:
        """Largest possible lower bound: the one from correct guesses only."""
        count = self.coins.size
        return bounds.one_run_mu(count, count, count, confidence=self.confidence)

    @property
    def reasons(self) -> list[str]:
        """Reasons for the verdict that the claim is violated; empty otherwise."""
        return exceeded(self.lower_bound_mu, self.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if the number of correct guesses is too unlikely under the claimed curve."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Everything except coins and scores, as JSON types."""
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
            "false_positive_rate": FALSE_POSITIVE_RATE,
            "true_positive_rate": self.true_positive_rate,
            "true_positive_rate_error": self.true_positive_rate_error,
            "true_positive_rate_bound": self.true_positive_rate_bound,
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
    """Train, release, and attack the release. Owner-only if the ratings are private."""
    validate.positive_integer("shadows", shadows, "2 are usual")
    bounds.check_confidence(confidence)
    session = session or Session()
    count = targets.places.size
    coins = toss(count)
    # Shadow models come in pairs with opposite coins, so that the targets cancel in the baseline.
    tosses = [coins]
    for _ in range(shadows):
        own = toss(count)
        tosses += [own, ~own]
    fits = []
    for number, shown in enumerate(tosses):
        progress(number, len(tosses))
        fits.append(solver.fit(targets.dataset(shown), budget, session))
    progress(len(tosses), len(tosses))
    # If item profiles are not released, the attacker uses those of a shadow model.
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
    """Gaussian-DP parameter μ between two values of one rating, or between a rating and none.

    A table of users or items moves by at most the distance between the two values (feature vectors
    have norm at most 1), and never by more than its sensitivity. If the sensitivity is the range of
    the scale, the result is μ·distance/range. So does the sum of all ratings. Any other total, and
    a balanced table, may move by its whole sensitivity.
    """
    if low is None:
        return ledger.spend().mu
    # Solvers round values to a grid of at least VALUE_LEVELS steps; the step is a power of two.
    step = 2.0 ** math.floor(math.log2(scale.range / VALUE_LEVELS))
    ends = scale.low, scale.high, (scale.low + scale.high) / 2
    on_grid = all((value / step).is_integer() for value in (low, high, *ends))
    distance = high - low + (0.0 if on_grid else step)
    squares = [
        (event.mu * min(1.0, distance / event.sensitivity)) ** 2
        if event.rows not in (Rows.TOTAL, Rows.BALANCED) or event.purpose == SUM_OF_RATINGS
        else event.mu**2
        for event in ledger.events
        if isinstance(event, GaussianRelease)
    ]
    return math.sqrt(math.fsum(squares))
