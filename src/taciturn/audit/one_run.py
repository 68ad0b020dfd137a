"""`taciturn audit one-run`: many canaries in one training, each flipped by a secure coin.

No two canaries share a user or an item, so no row of a table depends on two of them. The attacker
sees all released tables and all ratings except the canaries, and guesses the coins. The number of
guesses is fixed in advance. If more guesses are correct than the claim allows, it is violated.
"""

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from taciturn._internal import validate
from taciturn._internal.roots import root
from taciturn.accounting import gaussian
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.audit import bounds
from taciturn.audit.cases import banded, matching
from taciturn.audit.transcript import Diverged, Transcript, play, watch
from taciturn.audit.verdict import Claim, Verdict, claim_of, claim_to_dict, exceeded
from taciturn.data.ratings import Ratings
from taciturn.errors import CheckFailed, InvalidParameter
from taciturn.mechanisms.query import BoundedQuery
from taciturn.solvers.contract import Session
from taciturn.solvers.solver import Solver

Coins = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

CANARIES_MIN = 10

EPSILON = 5.0
"""Default ε of an audit with one run; one run could not refute a larger claim."""

SUSPECTED = 1.5
"""The default number of guesses is optimal if canaries leak this multiple of the claimed μ. That is
nearly optimal if the claim is tight, and far better if it is violated."""

_REFUTING_ACCURACY = 0.97
"""Fraction of correct guesses that should suffice to refute a claim."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Canaries:
    """Ratings whose values are set by fair coins.

    Attributes
    ----------
    ratings
        All ratings. Private, except those of the canaries.
    places
        Positions of the canaries in `by_user`.
    low, high
        Value of a canary for tails and for heads. If `low` is None, tails means no rating.
    """

    ratings: Ratings
    places: npt.NDArray[np.int64]
    low: float | None
    high: float

    @property
    def users(self) -> npt.NDArray[np.int32]:
        """User of each canary."""
        return self.ratings.rows()[self.places]

    @property
    def items(self) -> npt.NDArray[np.int32]:
        """Item of each canary."""
        return self.ratings.by_user.columns[self.places]

    def dataset(self, coins: Coins) -> Ratings:
        """Ratings with the canaries set by the coins."""
        if self.low is not None:
            return self.ratings.replaced(self.places, np.where(coins, self.high, self.low))
        keep = np.ones(len(self.ratings), dtype=np.bool_)
        keep[self.places[~coins]] = False
        highest = np.full(self.places.size, self.high)
        return self.ratings.replaced(self.places, highest).select(keep)


def choose_canaries(
    ratings: Ratings,
    most: int,
    unit: Unit = Unit.VALUE,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Canaries:
    """At most `most` canaries among the ratings; by default they take both ends of the scale.

    Under unit `rating`, canaries are at the upper end of the scale or absent. Their choice depends
    on the rating pattern only, not on the values.
    """
    validate.positive_integer("canaries", most, "1,000 are usual")
    if unit is Unit.USER:
        raise InvalidParameter(
            "--unit user can be audited with two-worlds only: canaries must not share items, and "
            "users do"
        )
    if unit is Unit.RATING and (low, high) != (None, None):
        raise InvalidParameter(
            "under --unit rating a target is present or absent: leave out --values, or pass "
            "--unit value"
        )
    scale = ratings.scale
    high = scale.high if high is None else high
    if unit is Unit.VALUE:
        low = scale.low if low is None else low
        if not low < high:
            raise InvalidParameter(
                "--values needs two different values, the smaller first, such as 2:4"
            )
    places = matching(ratings, most, seed=0)
    if places.size < CANARIES_MIN:
        raise InvalidParameter(
            f"found only {places.size} canaries (ratings of different users and items) but an "
            f"audit needs {CANARIES_MIN}: give more ratings, or raise --canaries or --targets"
        )
    return Canaries(ratings=ratings, places=places, low=low, high=high)


def own_canaries(
    count: int, unit: Unit = Unit.VALUE, *, low: float | None = None, high: float | None = None
) -> Canaries:
    """Canaries in synthetic ratings: canary i is the rating of user i for item i."""
    ratings = banded(count)
    whole = choose_canaries(ratings, count, unit, low=low, high=high)
    places = [ratings.place(number, number) for number in range(count)]
    return replace(whole, places=np.array(places))


def toss(count: int) -> Coins:
    """Fair coins from the operating system's secure random source."""
    bits = np.unpackbits(np.frombuffer(os.urandom(-(-count // 8)), dtype=np.uint8))
    return bits[:count].astype(np.bool_)


@dataclass(frozen=True, eq=False, kw_only=True)
class OneRun:
    """Result of an audit with one run: coins, scores (high for heads), and number of guesses."""

    solver: Solver
    claim: Claim
    canaries: Canaries
    guesses: int
    confidence: float
    coins: Coins
    scores: Scores

    @property
    def correct(self) -> int:
        """Number of correct guesses: heads for the highest scores, tails for the lowest."""
        order = np.argsort(self.scores, kind="stable")
        tails, heads = self.guesses // 2, self.guesses - self.guesses // 2
        return int((~self.coins[order[:tails]]).sum() + self.coins[order[-heads:]].sum())

    @property
    def mu(self) -> float:
        """Lower bound on μ."""
        return bounds.one_run_mu(
            self.coins.size, self.guesses, self.correct, confidence=self.confidence
        )

    @property
    def mu_most(self) -> float:
        """Largest possible lower bound: the one from correct guesses only."""
        return bounds.one_run_mu(
            self.coins.size, self.guesses, self.guesses, confidence=self.confidence
        )

    @property
    def reasons(self) -> list[str]:
        """Reasons for the verdict that the claim is violated; empty otherwise."""
        return exceeded(self.mu, self.claim.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if the number of correct guesses is too unlikely under the claimed curve."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Everything except coins and scores, as JSON types."""
        delta, mu = self.claim.delta, self.mu
        return {
            "audit": "one-run",
            "solver": self.solver.name,
            "settings": self.solver.settings,
            **claim_to_dict(self.claim),
            "lower_bound": bounds.one_run_epsilon(
                self.coins.size,
                self.guesses,
                self.correct,
                delta=delta,
                confidence=self.confidence,
            ),
            "lower_bound_mu": mu,
            "lower_bound_mu_most": self.mu_most,
            "lower_bound_gaussian": gaussian.epsilon(delta, mu) if mu > 0 else 0.0,
            "lower_bound_gaussian_assumes": "the trade-off curve is Gaussian",
            "confidence": self.confidence,
            "runs": 1,
            "canaries": self.coins.size,
            "guesses": self.guesses,
            "correct": self.correct,
            "verdict": self.verdict,
            "reasons": self.reasons,
        }


def audit_one_run(
    solver: Solver,
    budget: Budget | None,
    canaries: Canaries,
    *,
    guesses: int | None = None,
    confidence: float = 0.95,
    session: Session | None = None,
) -> OneRun:
    """Attack one training. Owner-only if the ratings are private.

    The default number of guesses is the best one if every canary leaks `SUSPECTED` times the
    claimed μ.
    """
    bounds.check_confidence(confidence)
    count = canaries.places.size
    if guesses is not None and not 2 <= guesses <= count:
        raise InvalidParameter(f"--guesses must be from 2 to the number of canaries, {count}")
    session = session or Session()
    coins = toss(count)
    run = watch(solver, canaries.dataset(coins), budget, session)
    claim = claim_of(run.ledger, solver, budget)
    try:
        ends = [
            play(run, solver, canaries.dataset(np.full(count, end)), budget, session)
            for end in (False, True)
        ]
    except Diverged as error:
        raise CheckFailed(f"the claim is violated: {error}") from None
    return OneRun(
        solver=solver,
        claim=claim,
        canaries=canaries,
        guesses=guesses or best_guesses(count, SUSPECTED * claim.mu, confidence, claim.mu),
        confidence=confidence,
        coins=coins,
        scores=_scores(run, ends[0], ends[1], canaries),
    )


def _scores(run: Transcript, low: Transcript, high: Transcript, canaries: Canaries) -> Scores:
    """Log-likelihood ratio of heads against tails for each canary, from the rows it is in.

    No row has two canaries, so two replays of the transcript, with all canaries low and all high,
    give both possible sums of every row. Totals over all ratings are not used.
    """
    scores = np.zeros(canaries.places.size)
    for table, one, two, scale in zip(
        run.tables, low.tables, high.tables, run.noise_scales, strict=True
    ):
        for rows in _rows(table.query, canaries):
            difference = (two.sums[rows] - one.sums[rows]).astype(np.float64)
            offset = table.released[rows] / table.query.step - (one.sums[rows] + difference / 2)
            scores += (difference * offset).sum(axis=1) / scale**2
    return scores


def _rows(query: BoundedQuery, canaries: Canaries) -> tuple[npt.NDArray[Any], ...]:
    """Rows of each canary in a table: one or two of its own; none if canaries share rows.

    Raises for tables of contributions, where a rating changes all rows of its user.
    """
    if query.rows is Rows.CONTRIBUTIONS:
        raise InvalidParameter(
            "this training bounds whole users, so it can be audited with two-worlds only: a rating "
            "has no row of its own"
        )
    count, (users, items) = query.shape[0], canaries.ratings.shape
    if query.rows is Rows.BALANCED and count == users + items:
        return canaries.users, users + canaries.items
    if query.rows is Rows.USERS and count == users:
        return (canaries.users,)
    if query.rows is Rows.ITEMS and count == items:
        return (canaries.items,)
    return (canaries.places,) if count == len(canaries.ratings) else ()


def best_guesses(canaries: int, mu: float, confidence: float, claimed: float = 0.0) -> int:
    """Number of guesses with the best bound if each canary is a Gaussian release with this μ.

    Only numbers that could refute the claimed μ are considered, if there are any: preferably at
    an accuracy of `_REFUTING_ACCURACY`, otherwise without any wrong guess.
    """
    candidates = np.unique(np.geomspace(min(8, canaries), canaries, 24).astype(int) // 2 * 2)
    counts = [int(each) for each in candidates if each >= 2]

    def bound(guesses: int, accuracy: float) -> float:
        correct = math.floor(guesses * accuracy)
        return bounds.one_run_mu(canaries, guesses, correct, confidence=confidence)

    for accuracy in (_REFUTING_ACCURACY, 1.0):
        able = [each for each in counts if bound(each, accuracy) > claimed]
        if able:
            return max(able, key=lambda each: bound(each, _accuracy(each / canaries, mu)))
    return max(counts, key=lambda each: bound(each, 1.0))


def _accuracy(share: float, mu: float) -> float:
    """Accuracy of the most confident `share` of guesses, for Gaussian scores around ±μ/2."""

    def guessed(threshold: float) -> float:
        return float(ndtr(mu / 2 - threshold) + ndtr(-mu / 2 - threshold))

    threshold = 0.0 if share >= 1 else root(lambda t: guessed(t) - share, 0.0, mu + 40)
    return float(ndtr(mu / 2 - threshold)) / guessed(threshold)
