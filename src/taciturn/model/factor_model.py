"""Factor model that fits produce and releases serve.

The predicted rating is mean + user bias + item bias + ⟨user factors, item factors⟩, clipped to the
scale. The value before clipping is called a score. Nothing here needs the compiled core, so that a
release can be read and verified without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.arrays import checked
from taciturn._internal.ids import Id, Ids, id_series, like_ids
from taciturn._internal.spelling import either, option
from taciturn.errors import InvalidParameter
from taciturn.model.fold_in import FoldedIn, assumed_prior, known_ratings, solve_profile
from taciturn.model.interest import Interest, InterestItems
from taciturn.model.profiles import Floats, Prior, Profiles, Rows
from taciturn.model.stars import star_probabilities
from taciturn.scale import Scale

NOT_PERSONALISED = (
    "not personalised: the profiles have no factors, so items are ranked the same for every user"
)
"""Remark about a model without factors."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FactorModel:
    """Profiles of users and items, and the parameters needed to predict from them.

    Methods take ids. Those whose names end in `_rows` take row numbers instead, and raise if a
    number is out of range.

    Attributes
    ----------
    scale
        Declared rating scale.
    mean
        Added to every score.
    users, items
        Profiles; None for an axis that the model does not include.
    residual_variance
        Variance that a rating would have about its prediction if all profiles were known; None if
        the profiles have no variances.
    prior
        Prior of a user's profile, for models in which users fold in.
    interest
        Parameters of interest; None if the model has none. All profiles then have interest vectors,
        and otherwise none has.
    """

    scale: Scale
    mean: float
    users: Profiles | None
    items: Profiles | None
    residual_variance: float | None = None
    prior: Prior | None = None
    interest: Interest | None = None

    def __post_init__(self) -> None:
        validate.instance("scale", self.scale, Scale, "build one, such as Scale.parse('1:5')")
        validate.finite("mean", self.mean, "it is a number")
        for name in ("users", "items"):
            if getattr(self, name) is not None:
                validate.instance(name, getattr(self, name), Profiles, "or None if absent")
        self._check_interests()
        if self.users is None or self.items is None:
            return
        widths = [profiles.factors.shape[1] for profiles in (self.users, self.items)]
        if widths[0] != widths[1]:
            raise InvalidParameter(
                f"user profiles have {widths[0]} factors and item profiles {widths[1]}; both must "
                "come from the same training"
            )

    def _check_interests(self) -> None:
        """Raise unless profiles have interest vectors of one width, or none has."""
        present = [each for each in (self.users, self.items) if each is not None]
        found = [each.interests for each in present]
        if any((each is not None) != (self.interest is not None) for each in found):
            raise InvalidParameter("profiles must have interests exactly if the model has interest")
        if len({each.shape[1] for each in found if each is not None}) > 1:
            raise InvalidParameter("users and items must have interests of one width")

    def __repr__(self) -> str:
        # Without the number of users, which is private in a model with private profiles.
        return f"FactorModel(scale={self.scale}, {self.factor_count} factors)"

    @property
    def user_profiles(self) -> Profiles:
        """Profiles of users; raises `InvalidParameter` if the model has none."""
        return _present(self.users, "user")

    @property
    def item_profiles(self) -> Profiles:
        """Profiles of items; raises `InvalidParameter` if the model has none."""
        return _present(self.items, "item")

    @property
    def factor_count(self) -> int:
        """Number of factors in a profile, k."""
        profiles = self.users if self.items is None else self.items
        return int(_present(profiles, "user or item").factors.shape[1])

    @property
    def is_personalised(self) -> bool:
        """True if the ranking of items depends on the user: profiles have factors."""
        return self.factor_count > 0 or self.interest_count > 1

    @property
    def predicts_ratings(self) -> bool:
        """False for popularity alone, whose items have neither biases nor factors."""
        if self.interest_count != 1 or self.factor_count > 0 or self.items is None:
            return True
        return bool(self.items.biases.any())

    @property
    def interest_count(self) -> int:
        """Number of entries of an interest vector, popularity first; 0 without interest."""
        profiles = self.users if self.items is None else self.items
        interests = _present(profiles, "user or item").interests
        return 0 if interests is None else int(interests.shape[1])

    @property
    def popularity(self) -> Floats | None:
        """Popularity of each item, relative to others of this model; None without interest."""
        interests = self.item_profiles.interests
        return None if interests is None else interests[:, 0]

    @cached_property
    def interest_items(self) -> InterestItems | None:
        """Interest vectors of the items, from which a user's are solved; None without interest."""
        interests = self.item_profiles.interests
        return None if interests is None else InterestItems.of(interests)

    @cached_property
    def _assumed_prior(self) -> Prior:
        """Prior of a user's profile in a model that has none."""
        return assumed_prior(self.item_profiles, self.scale)

    def without_interest(self) -> "FactorModel":
        """Model of ratings alone."""
        if self.interest is None:
            return self
        users, items = (
            None if each is None else replace(each, interests=None)
            for each in (self.users, self.items)
        )
        return replace(self, users=users, items=items, interest=None)

    @property
    def has_variances(self) -> bool:
        """True if users and items have the variances that `standard_deviation_rows` needs."""
        has_user_variances = self.users is not None and self.users.variances is not None
        return self.has_item_variances and has_user_variances

    @property
    def has_item_variances(self) -> bool:
        """True if items have variances, so that a user who folds in has them too."""
        has_variances = self.items is not None and self.items.variances is not None
        return self.residual_variance is not None and has_variances

    @overload
    def predict(self, users: Id, items: Id) -> float: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, users: Ids, items: Ids) -> Floats: ...

    def predict(self, users: Any, items: Any) -> Any:
        """Predicted ratings of (user, item) pairs of ids, clipped to the scale.

        A number for one user and one item; an array for as many users as items. Raises and names
        the first id that the model does not have, or if the model predicts no ratings.
        """
        check_predicts(self)
        return like_ids(self.predict_rows(*self.rows_of_pairs(users, items)), users)

    def rows_of_pairs(
        self, users: Id | Ids, items: Id | Ids
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """User rows and item rows of pairs of ids; raises and names the first unknown id."""
        of_users, of_items = id_series(users), id_series(items)
        if len(of_users) != len(of_items):
            raise InvalidParameter(
                "users and items must have equal lengths: one item for each user"
            )
        return self.rows_of_users(of_users), self.rows_of_items(of_items)

    def rows_of_users(self, ids: Id | Ids) -> npt.NDArray[np.int64]:
        """Row of each user id; raises and names the first unknown one."""
        hint = (
            f"fold in a new user from their own ratings with {either('--ratings FILE', 'fold_in')}"
        )
        return _known_rows(ids, self.user_profiles, "user", hint)

    def rows_of_items(self, ids: Id | Ids) -> npt.NDArray[np.int64]:
        """Row of each item id; raises and names the first unknown one."""
        hint = "an item without a profile cannot be scored"
        return _known_rows(ids, self.item_profiles, "item", hint)

    def score_rows(self, users: Rows, items: Rows) -> Floats:
        """Scores of pairs of rows, not clipped, in the precision of the factors."""
        one, two = self.user_profiles, self.item_profiles
        _check_rows(users, one, "user")
        _check_rows(items, two, "item")
        scores: Floats = np.einsum("nk,nk->n", one.factors[users], two.factors[items])
        scores += one.biases[users] + two.biases[items] + scores.dtype.type(self.mean)
        return scores

    def predict_rows(self, users: Rows, items: Rows) -> Floats:
        """Predicted ratings of pairs of rows: scores clipped to the scale."""
        clipped: Floats = np.clip(self.score_rows(users, items), self.scale.low, self.scale.high)
        return clipped

    def offsets_rows(self, users: Rows) -> Floats:
        """Mean plus user bias: the part of a user's scores that is the same for every item."""
        one = self.user_profiles
        _check_rows(users, one, "user")
        return np.asarray(one.biases.dtype.type(self.mean) + one.biases[users])

    def with_user(
        self,
        bias: float,
        factors: npt.ArrayLike,
        variances: npt.ArrayLike | None = None,
        interest: npt.ArrayLike | None = None,
    ) -> "FactorModel":
        """Copy of the model whose only user, row 0, has the given profile.

        Used to serve a profile from `fold_in`. The copy is as private as that profile. `variances`
        are those of the bias and of each factor. Without an interest vector the copy has no
        interest.
        """
        dtype, width = self.item_profiles.factors.dtype, self.factor_count
        bias = validate.finite("bias", bias, "it is a number")
        profile = _finite_numbers(factors, width)
        if profile is None:
            raise InvalidParameter(f"a profile of this model must have {width} finite numbers")
        biases = np.array([bias], dtype=dtype)
        user = Profiles(ids=pl.Series([0]), biases=biases, factors=profile.astype(dtype)[None])
        if variances is not None:
            given = _finite_numbers(variances, 1 + width)
            if given is None or (given < 0).any():
                raise InvalidParameter(
                    f"variances of a profile of this model must be {1 + width} numbers of at least "
                    "0, that of the bias first"
                )
            user = user.with_variances(given[None].astype(np.float64))
        if interest is None:
            return replace(self.without_interest(), users=user)
        count = self.interest_count
        vector = _finite_numbers(interest, count) if count else None
        if vector is None:
            raise InvalidParameter(
                f"an interest vector of this model must have {count} finite numbers"
                if count
                else "this model has no interest; leave the interest vector out"
            )
        return replace(self, users=replace(user, interests=vector.astype(dtype)[None]))

    def standard_deviation_rows(self, users: Rows, items: Rows) -> Floats:
        """Predictive standard deviations of pairs of rows, before clipping.

        They combine the residual variance with the posterior variances of both profiles, which are
        treated as independent.
        """
        one, two = self.user_profiles, self.item_profiles
        _check_rows(users, one, "user")
        _check_rows(items, two, "item")
        variance = _estimated(self.residual_variance) + _estimated(one.bias_variances)[users]
        variance = variance + _estimated(two.bias_variances)[items]
        of_users, of_items = _estimated(one.variances)[users], _estimated(two.variances)[items]
        variance += np.einsum("nk,nk->n", of_users, two.factors[items] ** 2 + of_items)
        variance += np.einsum("nk,nk->n", one.factors[users] ** 2, of_items)
        return np.asarray(np.sqrt(variance), dtype=one.factors.dtype)

    def star_probability_rows(self, users: Rows, items: Rows) -> Floats:
        """Probability of each value of the scale, for pairs of rows (pairs × values).

        Raises unless the scale has a step and the profiles have variances. The values are
        `scale.levels`.
        """
        deviations = self.standard_deviation_rows(users, items).astype(np.float64)
        scores = self.score_rows(users, items).astype(np.float64)
        return star_probabilities(self.scale, scores, deviations)

    def fold_in(self, ratings: Mapping[Id, float], regularization: float = 1.0) -> FoldedIn:
        """Profile of a user outside the model, fitted to their own ratings.

        Reads the user's ratings without noise: the result is private to that user, must not be
        published and is not covered by any certificate. Solves the ridge regression in
        docs/reference/release-format.md. Items without a profile are ignored and listed in the
        result; raises if no item has one.

        Parameters
        ----------
        ratings
            Ratings by item id, on the scale. Ids are converted to the type of the model's ids, so
            the keys of a JSON object may be passed as they are.
        regularization
            Multiplier of the prior's diagonal. If the model has no prior, user factors are assumed
            to have the same variances as item factors.
        """
        regularization = validate.positive("regularization", regularization, "1 is usual")
        items = self.item_profiles
        known = known_ratings(ratings, items, self.scale)
        prior = self.prior or self._assumed_prior
        residuals = known.values - self.mean - items.biases[known.rows]
        folded = solve_profile(
            residuals,
            items.factors[known.rows],
            prior,
            regularization,
            has_variances=self.has_item_variances,
        )
        vector = None
        if self.interest is not None and self.interest_items is not None:
            vector = self.interest_items.coefficients(np.unique(known.rows), self.interest)
        return replace(folded, unknown_items=known.unknown, interest=vector)


class HasModel(Protocol):
    """A release or a fit: anything with a model that may be published."""

    @property
    def model(self) -> FactorModel:
        """Model that may be published."""
        ...


def check_predicts(model: FactorModel) -> None:
    """Raise unless a model predicts ratings."""
    if not model.predicts_ratings:
        raise InvalidParameter(
            f"this model predicts no ratings; train with {option('solver', 'als')} to have them"
        )


def model_of(source: HasModel | FactorModel) -> FactorModel:
    """Model of a release or a fit, or the model itself; raises for anything else."""
    model = source if isinstance(source, FactorModel) else getattr(source, "model", None)
    expected = "a release (from taciturn.load_release), a fit or a FactorModel"
    if not isinstance(model, FactorModel):
        raise InvalidParameter(f"pass {expected}, got {validate.shown(source)}")
    return model


def _finite_numbers(given: npt.ArrayLike, width: int) -> Floats | None:
    """Vector of finite numbers of this length; None for anything else."""
    if not isinstance(given, list | tuple | np.ndarray):
        return None
    found = np.asarray(given)
    is_vector = found.shape == (width,) and found.dtype.kind in "fiu"
    return found if is_vector and np.isfinite(found).all() else None


def _present(profiles: Profiles | None, role: str) -> Profiles:
    if profiles is None:
        raise InvalidParameter(f"this model has no {role} profiles")
    return profiles


def _known_rows(ids: Id | Ids, profiles: Profiles, role: str, hint: str) -> npt.NDArray[np.int64]:
    """Row of each id; raises and names the first unknown one."""
    row = profiles.id_table.row_of(ids) if type(ids) is int else None
    if row is not None:
        return np.array([row])
    series = id_series(ids)
    rows = profiles.id_table.find(series, "this list")
    missing = np.flatnonzero(rows < 0)
    if missing.size:
        name = validate.shown(series[int(missing[0])])
        raise InvalidParameter(f"there is no {role} {name} in the release; {hint}")
    return rows


def _check_rows(rows: Rows, profiles: Profiles, role: str) -> None:
    """Raise unless row numbers are in range; NumPy would count negative ones from the end."""
    checked(f"{role} rows", rows, "i")
    if rows.size and not (rows.min() >= 0 and rows.max() < len(profiles)):
        raise InvalidParameter(f"{role} rows must be row numbers of the {role} profiles")


def _estimated(variances: Any) -> Any:
    if variances is None:
        raise InvalidParameter(
            f"these profiles have no variances; train with {option('uncertainty', True)}"
        )
    return variances
