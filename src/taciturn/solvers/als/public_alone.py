"""Predictions from public ratings alone: the row with ε = 0 of a comparison.

Nothing of the private ratings is released. Users fold in to public items, where a solver would
serve them so; otherwise they have no profile, and items are ranked the same for all.
"""

from dataclasses import replace

import numpy as np

from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.als.fold_in import UserPrior, solved_users, with_prior
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.solver import Solver


def public_alone(ratings: Ratings, solver: Solver, threads: int | None = None) -> FactorModel:
    """Model of the public ratings of these ratings, with users as a solver would serve them.

    If users fold in, their profiles are exact functions of their own ratings: owner-only.
    """
    facts = solver.public_facts(ratings)
    items = PublicItems.of(facts)
    if items is None:
        raise InvalidParameter("the ratings have no public ratings; use with_public_ratings first")
    model, rows = items.model, items.rows
    found = FactorModel(
        scale=facts.scale,
        mean=model.mean,
        users=Profiles.from_rows(
            ratings.user_ids, np.zeros((len(ratings.user_ids), rows.shape[1]))
        ),
        items=Profiles.from_rows(facts.item_ids, rows),
    )
    if not solver.folds_in:
        return found
    prior = UserPrior(
        residual_variance=model.residual**2,
        mean=np.zeros(rows.shape[1]),
        bias_variance=model.bias**2,
        covariance=np.eye(items.factors),
    )
    folded = with_prior(found, prior, facts.item_features)
    return replace(folded, users=solved_users(folded, ratings, threads))
