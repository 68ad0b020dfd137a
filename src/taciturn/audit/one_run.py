"""`taciturn audit one-run`: many canaries in one training, each flipped by a secure coin.

Canaries are ratings of different users and different items, so that their rows never meet. After
the training the attacker is told everything that was released and all ratings but the canaries, and
guesses coins; how many guesses is fixed beforehand. More correct guesses than a private training
allows speak against its claim.
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
from taciturn.audit.transcript import Diverged, Transcript, play, watch
from taciturn.audit.verdict import Claim, Verdict, claim_of, claim_to_dict, exceeded
from taciturn.audit.worlds import banded, matching
from taciturn.data.ratings import Ratings
from taciturn.errors import CheckFailed, InvalidParameter
from taciturn.mechanisms.query import BoundedQuery
from taciturn.solvers.contract import Session
from taciturn.solvers.solver import Solver

Coins = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

CANARIES_MIN = 10

EPSILON = 5.0
"""What is audited when no ε is given; beyond it, one run could not refute a claim at all."""

SUSPECTED = 1.5
"""Guesses are as many as show most if canaries leak so many times the claimed μ: hardly worse than
the best number if the claim is tight, and far better if it is violated."""

_USUAL_BEST = 0.97
"""Share of correct guesses that a claim should be refutable with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Canaries:
    """Ratings that coins decide: the pairs they belong to, and what each is by its coin.

    Attributes
    ----------
    ratings
        All ratings. Private, those of canaries excepted.
    places
        Where the canaries are, in the order of `by_user`.
    low, high
        What a canary is if its coin shows tails or heads; a low of None is no rating at all.
    """

    ratings: Ratings
    places: npt.NDArray[np.int64]
    low: float | None
    high: float

    @property
    def users(self) -> npt.NDArray[np.int32]:
        """Whose ratings they are."""
        return self.ratings.rows()[self.places]

    @property
    def items(self) -> npt.NDArray[np.int32]:
        """What they rate."""
        return self.ratings.by_user.columns[self.places]

    def world(self, coins: Coins) -> Ratings:
        """Return the ratings that coins decide on."""
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
    """Return at most so many canaries among ratings; their values go from end to end of the scale.

    Under `rating` they are at its upper end, or not there. Which ratings depends on who rated what
    alone.
    """
    validate.positive_integer("canaries", most, "1,000 are usual")
    if unit is Unit.USER:
        raise InvalidParameter("people share the rows of items: audit unit user with two-worlds")
    if unit is Unit.RATING and (low, high) != (None, None):
        raise InvalidParameter("under unit rating a canary is there or not: leave out its values")
    scale = ratings.scale
    high = scale.high if high is None else high
    if unit is Unit.VALUE:
        low = scale.low if low is None else low
        if not low < high:
            raise InvalidParameter("a canary is one of two different values, the smaller first")
    places = matching(ratings, most, seed=0)
    if places.size < CANARIES_MIN:
        raise InvalidParameter(
            f"there is room for {places.size} canaries, ratings of different users and items; "
            f"an audit needs {CANARIES_MIN}"
        )
    return Canaries(ratings=ratings, places=places, low=low, high=high)


def own_canaries(
    count: int, unit: Unit = Unit.VALUE, *, low: float | None = None, high: float | None = None
) -> Canaries:
    """Return canaries among ratings made for them: user and item of the same number."""
    ratings = banded(count)
    whole = choose_canaries(ratings, count, unit, low=low, high=high)
    places = [ratings.place(number, number) for number in range(count)]
    return replace(whole, places=np.array(places))


def toss(count: int) -> Coins:
    """Return fair coins from the operating system."""
    bits = np.unpackbits(np.frombuffer(os.urandom(-(-count // 8)), dtype=np.uint8))
    return bits[:count].astype(np.bool_)


@dataclass(frozen=True, eq=False, kw_only=True)
class OneRun:
    """The result of an audit: coins, scores that should be high for heads, and the guesses."""

    solver: Solver
    claim: Claim
    canaries: Canaries
    guesses: int
    confidence: float
    coins: Coins
    scores: Scores

    @property
    def correct(self) -> int:
        """How many guesses were correct: the highest scores are guessed heads, the lowest tails."""
        order = np.argsort(self.scores, kind="stable")
        tails, heads = self.guesses // 2, self.guesses - self.guesses // 2
        return int((~self.coins[order[:tails]]).sum() + self.coins[order[-heads:]].sum())

    @property
    def mu(self) -> float:
        """The lower bound on μ."""
        return bounds.one_run_mu(
            self.coins.size, self.guesses, self.correct, confidence=self.confidence
        )

    @property
    def mu_most(self) -> float:
        """The largest bound that so many guesses can give, all correct."""
        return bounds.one_run_mu(
            self.coins.size, self.guesses, self.guesses, confidence=self.confidence
        )

    @property
    def reasons(self) -> list[str]:
        """What the verdict follows from, if it is that the claim is violated."""
        return exceeded(self.mu, self.claim.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if so many correct guesses are too unlikely under the claimed curve."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return everything but coins and scores as JSON types."""
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
            "lower_bound_gaussian_assumes": "the trade-off curve is that of some Gaussian",
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
    """Attack one training. Reads private data if ratings are: the owner's own view.

    Without a number of guesses, it is what would show most if every canary leaked `SUSPECTED` times
    what is claimed.
    """
    bounds.check_confidence(confidence)
    count = canaries.places.size
    if guesses is not None and not 2 <= guesses <= count:
        raise InvalidParameter(f"guesses must be from 2 to the number of canaries, {count}")
    session = session or Session()
    coins = toss(count)
    run = watch(solver, canaries.world(coins), budget, session)
    claim = claim_of(run.ledger, solver, budget)
    try:
        ends = [
            play(run, solver, canaries.world(np.full(count, end)), budget, session)
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
    """Return for each canary how much likelier its rows are with heads than with tails.

    Along the history of the run, all canaries low and all high tell both sums of every row, since
    no row has two canaries. Totals over all ratings are left out.
    """
    scores = np.zeros(canaries.places.size)
    for table, one, two, scale in zip(
        run.tables, low.tables, high.tables, run.noise_scales, strict=True
    ):
        rows = _rows(table.query, canaries)
        if rows is None:
            continue
        difference = (two.sums[rows] - one.sums[rows]).astype(np.float64)
        offset = table.released[rows] / table.query.step - (one.sums[rows] + difference / 2)
        scores += (difference * offset).sum(axis=1) / scale**2
    return scores


def _rows(query: BoundedQuery, canaries: Canaries) -> npt.NDArray[Any] | None:
    """Return which rows of a table the canaries are in, None if they share one."""
    count = query.shape[0]
    if query.rows is Rows.USERS and count == canaries.ratings.shape[0]:
        return canaries.users
    if query.rows is Rows.ITEMS and count == canaries.ratings.shape[1]:
        return canaries.items
    return canaries.places if count == len(canaries.ratings) else None


def best_guesses(canaries: int, mu: float, confidence: float, claimed: float = 0.0) -> int:
    """Return how many guesses would bound μ best if each canary leaked it like a Gaussian does.

    Of those, if there are any, that could refute what is claimed: with a mistake or two, or at all.
    """
    candidates = np.unique(np.geomspace(min(8, canaries), canaries, 24).astype(int) // 2 * 2)
    counts = [int(each) for each in candidates if each >= 2]

    def bound(guesses: int, accuracy: float) -> float:
        correct = math.floor(guesses * accuracy)
        return bounds.one_run_mu(canaries, guesses, correct, confidence=confidence)

    for accuracy in (_USUAL_BEST, 1.0):
        able = [each for each in counts if bound(each, accuracy) > claimed]
        if able:
            return max(able, key=lambda each: bound(each, _accuracy(each / canaries, mu)))
    return max(counts, key=lambda each: bound(each, 1.0))


def _accuracy(share: float, mu: float) -> float:
    """Return how often the surest guesses are right, of Gaussian scores at ±μ/2."""

    def guessed(threshold: float) -> float:
        return float(ndtr(mu / 2 - threshold) + ndtr(-mu / 2 - threshold))

    threshold = 0.0 if share >= 1 else root(lambda t: guessed(t) - share, 0.0, mu + 40)
    return float(ndtr(mu / 2 - threshold)) / guessed(threshold)
