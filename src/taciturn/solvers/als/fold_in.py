"""Serving by folding in under units `value` and `rating`: only the output of a training changes.

Both axes are queried, noised and charged as for published profiles. The release then holds the
items and the prior of a user's profile, and no user. Each user's profile is solved exactly from the
released items and that user's own ratings, and shown to that user only (docs/proofs/fold-in.md).
Where `als` bounds whole users instead, `UserAlgorithm` trains and makes the model itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from taciturn._internal.ridge import solve_rows
from taciturn._internal.spelling import option
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Pattern
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Released
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Floats, Prior, Profiles
from taciturn.queries.executor import RatingQuery
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.contract import Algorithm, OwnerOnly, PublicFacts, Seeds, State
from taciturn.solvers.entry import OWN_PROFILES

Rows = npt.NDArray[np.float64]

RANGE_MAX = 1e6
"""Maximum width of a scale for which a release can store variances."""

_FEATURE_VARIANCE = 0.06
"""Prior variance of the part of a user's ratings that item features explain, relative to the
residual variance."""

_LEFT = 0.8
"""Share of the variances of items that is left where users fold in. Users are fitted to released
items, errors included, which makes up for a part of these errors."""

_BLOCK = 1 << 15
"""Number of users whose posterior covariances are held in memory at a time."""

_SMALLEST = 1e-6
"""Minimum variance of a coefficient, relative to the residual variance."""

_PUBLIC_DEVIATION = 0.5
"""Prior standard deviation of users' public factors under unit `value`, relative to that in public
ratings. Trained factors explain the rest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UserPrior:
    """Prior of a user's profile in the coordinates of released profiles, in rating units.

    A function of released numbers and public constants only.

    Attributes
    ----------
    residual_variance
        Variance of a rating about its prediction.
    mean
        Prior mean of the bias and of each factor (1 + k).
    bias_variance, covariance
        Prior variance of the bias, and covariance of the factors (k × k).
    """

    residual_variance: float
    mean: Rows
    bias_variance: float
    covariance: Rows

    @classmethod
    def of_rows(
        cls, rows: Rows, weights: Rows, *, variances: Rows | None = None, residual_variance: float
    ) -> "UserPrior":
        """Weighted mean and covariance of released rows, bias first.

        `variances` (rows × coefficients) are posterior variances of the rows, which their own
        covariance lacks.
        """
        shares = weights / weights.sum()
        mean = shares @ rows
        centred = rows - mean
        covariance = centred.T @ (centred * shares[:, None])
        if variances is not None:
            covariance += np.diag(shares @ variances)
        covariance += _SMALLEST * residual_variance * np.eye(len(mean))
        return cls(
            residual_variance=residual_variance,
            mean=mean,
            bias_variance=float(covariance[0, 0]),
            covariance=covariance[1:, 1:],
        )


def with_prior(
    model: FactorModel, prior: UserPrior, features: Rows, further: Rows | None = None
) -> FactorModel:
    """Model without users, in coordinates in which a user's factors have variance 1.

    Public item features (items × p, p may be 0) become further factors of the items. Users have
    coefficients for them at serving only: in training they would be noised, which costs more than
    they gain. `further` are public factors of the items, for which users have variance 1.

    With a user's factors θ = m + A z and A Aᵀ their covariance, the prediction b + ⟨x, θ⟩ is
    (b + ⟨x, m⟩) + ⟨Aᵀx, z⟩, so the prior of z needs neither a mean nor a covariance. The cosine of
    two items is then the correlation of their predictions over users.
    """
    items = model.item_profiles
    factors, root = items.factors.astype(np.float64), _root(prior.covariance)
    explained = _FEATURE_VARIANCE * prior.residual_variance / max(1, features.shape[1])
    rows = np.column_stack(
        [
            items.biases + factors @ prior.mean[1:],
            factors @ root,
            features * np.sqrt(explained),
        ]
    )
    if further is not None:
        rows = np.hstack([rows, further])
    turned = Profiles.from_rows(items.ids, rows)
    if items.bias_variances is not None and items.variances is not None:
        known = items.variances.astype(np.float64)
        learnt = np.column_stack(
            [items.bias_variances + known @ prior.mean[1:] ** 2, known @ root**2]
        )
        variances = np.zeros_like(rows)
        variances[:, : learnt.shape[1]] = learnt
        turned = turned.with_variances(_LEFT * variances)
    return replace(
        model,
        mean=float(model.mean + prior.mean[0]),
        users=None,
        items=turned,
        prior=Prior(
            residual_variance=prior.residual_variance,
            variances=(prior.bias_variance, *[1.0] * (rows.shape[1] - 1)),
        ),
    )


def _root(covariance: Rows) -> Rows:
    """Square root A with A Aᵀ = covariance, columns in descending order of their size."""
    values, vectors = np.linalg.eigh(covariance)
    root: Rows = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    return root


def solved_users(model: FactorModel, ratings: Ratings, threads: int | None = None) -> Profiles:
    """Profile of every user, as `fold_in` gives it. Exact and private, each to its own user.

    With variances if the items of the model have them.
    """
    items, prior = model.item_profiles, model.prior
    if prior is None:
        raise InvalidParameter("the model has no prior with which to solve users")
    pattern, targets = ratings.pattern.by_user, (ratings.values() - model.mean).astype(np.float32)
    width = len(prior.variances)
    inverted = width - 1 if model.has_item_variances else 0
    rows = np.empty((len(pattern), width))
    variances = np.tile(prior.variances, (len(pattern), 1))
    for begin in range(0, len(pattern), _BLOCK):
        users = slice(begin, min(begin + _BLOCK, len(pattern)))
        starts, counts = pattern.starts[begin : users.stop + 1], pattern.counts[users]
        inverse = np.empty((counts.size, inverted, width), dtype=np.float32)
        rows[users] = solve_rows(
            starts,
            pattern.columns,
            targets,
            np.column_stack([items.biases, items.factors]).astype(np.float64),
            by_count=np.zeros(width),
            fixed=prior.residual_variance / np.array(prior.variances),
            inverse=inverse,
            threads=threads,
        )
        if model.has_item_variances:
            sums = _sums_by_user(pattern, users, items.factors)
            first = counts + prior.residual_variance / prior.variances[0]
            diagonal = np.column_stack(
                [
                    (1 - np.einsum("nk,nk->n", sums, inverse[:, :, 0])) / first,
                    np.einsum("nkk->nk", inverse[:, :, 1:]),
                ]
            )
            is_rated = counts > 0
            variances[users][is_rated] = prior.residual_variance * diagonal[is_rated]
    found = Profiles.from_rows(ratings.user_ids, rows)
    return found.with_variances(variances) if model.has_item_variances else found


def _sums_by_user(pattern: Pattern, users: slice, factors: Floats) -> Rows:
    """Σ factors of the rated items of each user."""
    part = pattern.ones()[users]
    return np.asarray(part @ factors.astype(np.float64))


class FoldInAlgorithm(Algorithm[State]):
    """Training of another algorithm, whose users fold in instead of being published.

    Every query and update is that of the inner algorithm, which noises and charges both axes.

    Parameters
    ----------
    inner
        Algorithm with released profiles of users and items.
    user_prior
        Prior of a user's profile, from a state of the inner algorithm.
    facts
        Public facts of the ratings.
    threads
        Number of threads for the owner-only profiles of users.
    """

    def __init__(
        self,
        inner: Algorithm[State],
        user_prior: Callable[[State], UserPrior],
        facts: PublicFacts,
        threads: int | None = None,
    ) -> None:
        if facts.scale.range > RANGE_MAX:
            raise InvalidParameter(
                f"{option('serve', 'fold-in')} needs a scale no wider than {RANGE_MAX:,.0f}"
            )
        self.unit, self.budget, self.schedule = inner.unit, inner.budget, inner.schedule
        self.published_patterns, self.served_exactly = inner.published_patterns, OWN_PROFILES
        self._inner, self._user_prior, self._threads = inner, user_prior, threads
        self._features, public = facts.item_features, PublicItems.of(facts)
        self._further: Rows | None = None
        if public is not None and self.unit is Unit.VALUE:
            # Under `rating`, the trained factors begin with them.
            self._further = _PUBLIC_DEVIATION * public.rows[:, 1:]

    def initial_state(self, seeds: Seeds) -> State:
        """State before the first step."""
        return self._inner.initial_state(seeds)

    def query(self, step: int, state: State) -> RatingQuery:
        """Query spec of the inner algorithm."""
        return self._inner.query(step, state)

    def update(self, step: int, state: State, released: Released) -> State:
        """State of the inner algorithm after a step."""
        return self._inner.update(step, state, released)

    def model(self, state: State) -> FactorModel:
        """Released model: items, and the prior with which users fold in."""
        model, prior = self._inner.model(state), self._user_prior(state)
        return with_prior(model, prior, self._features, self._further)

    def owner_only(self, state: State, ratings: Ratings) -> OwnerOnly:
        """Profile of every user: an exact function of that user's ratings."""
        return OwnerOnly(users=solved_users(self.model(state), ratings, self._threads))
