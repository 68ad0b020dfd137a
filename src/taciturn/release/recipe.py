"""Use of a release without Taciturn: formulas, and code that needs NumPy and Polars alone."""

from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest
from taciturn.model.profiles import Prior
from taciturn.release.bundle import ITEMS, USERS


def recipe(model: FactorModel) -> list[str]:
    """Lines of Markdown: the formulas of the release, and code that makes a list."""
    formula = [
        "Without Taciturn, the predicted rating of an item by a user is",
        f"`{model.mean!r} + item bias + user bias + dot(item profile, user profile)`.",
        *_standard_deviations(model),
    ]
    if not model.predicts_ratings:
        formula = ["This release lists popular items and predicts no ratings. Without Taciturn:"]
    lines = [
        *formula,
        *_ranking_score(model),
        "",
        "```python",
        *(["import numpy as np"] if model.items is not None else []),
        "import polars as pl",
        "",
    ]
    if model.items is not None and model.users is not None:
        lines += [
            f'items, users = pl.read_parquet("{ITEMS}"), pl.read_parquet("{USERS}")',
            "user = users.row(0, named=True)",
            *_ratings(model, 'user["bias"]', 'user["profile"]'),
            *_best(model, 'user["interest"]'),
        ]
    elif model.users is not None:
        lines += [
            f'users = pl.read_parquet("{USERS}")  # multiply by your own item profiles',
        ]
    elif model.prior is not None:
        lines += [
            *_folding(model, model.prior),
            *_ratings(model, "mine[0]", "mine[1:]"),
            *_best(model, "interest"),
        ]
    else:
        lines += [f'items = pl.read_parquet("{ITEMS}")  # multiply by user profiles']
    return [*lines, "```"]


def _ranking_score(model: FactorModel) -> list[str]:
    """Formula of the ranking score, if the tables contain interest vectors."""
    if model.interest is None or not model.predicts_ratings:
        return []
    weight = model.interest.rating_weight
    return [
        "",
        "Lists are in the order of the ranking score",
        f"`dot(item interest, user interest) + {weight!r} * predicted rating`.",
    ]


def _folding(model: FactorModel, prior: Prior) -> list[str]:
    """Code that users run on their own devices to fold in their own ratings."""
    return [
        f'items = pl.read_parquet("{ITEMS}")',
        'own = pl.DataFrame({"item_id": [...], "rating": [...]})  # your ratings, kept private',
        'rated = own.join(items, on="item_id")',
        'design = np.column_stack([np.ones(len(rated)), np.vstack(rated["profile"].to_numpy())])',
        f'target = rated["rating"].to_numpy() - {model.mean!r} - rated["bias"].to_numpy()',
        f"ridge = {prior.residual_variance!r} / np.array({list(prior.variances)!r})",
        "mine = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ target)",
    ]


def _ratings(model: FactorModel, bias: str, profile: str) -> list[str]:
    """Code for the predicted ratings of all items by the user with this bias and profile."""
    return [
        'profiles = np.vstack(items["profile"].to_numpy())',
        f'ratings = {model.mean!r} + items["bias"].to_numpy() + {bias} + profiles @ {profile}',
    ]


def _best(model: FactorModel, interest: str) -> list[str]:
    """Code for the list of a user, given an expression for the user's interest vector."""
    if model.interest is None:
        return ['best = items["item_id"].gather((-ratings).argsort(kind="stable")[:10])']
    return [
        'interests = np.vstack(items["interest"].to_numpy()).astype(float)',
        *([] if model.users is not None else _folding_interest(model.interest)),
        f"scores = interests @ {interest} + {model.interest.rating_weight!r} * ratings",
        'best = items["item_id"].gather((-scores).argsort(kind="stable")[:10])',
    ]


def _folding_interest(interest: Interest) -> list[str]:
    """Code for the interest vector of a user who folds in: the regression of `InterestItems`."""
    unseen, ridge = interest.unseen_weight, interest.regularization
    return [
        'seen = np.vstack(rated["interest"].to_numpy()).astype(float)',
        f"added = {ridge!r} * (len(seen) + {unseen!r} * len(items)) * np.eye(seen.shape[1])",
        f"gram = seen.T @ seen + {unseen!r} * interests.T @ interests + added",
        "interest = np.linalg.solve(gram, seen.sum(axis=0))",
        "interest /= (interests @ interest).std()",
    ]


def _standard_deviations(model: FactorModel) -> list[str]:
    """Formula of the predictive variance, if the tables contain variances."""
    if model.residual_variance is None:
        return []
    return [
        "",
        "The predictive variance of a rating is",
        f"`{model.residual_variance!r} + item bias_variance + user bias_variance + "
        "dot(item profile_variance, user profile**2) + dot(item profile**2, user profile_variance) "
        "+ dot(item profile_variance, user profile_variance)`.",
        *_user_variances(model),
    ]


def _user_variances(model: FactorModel) -> list[str]:
    """Variances of a user who folds in."""
    if model.prior is None:
        return []
    inverse = "np.linalg.inv(design.T @ design + np.diag(ridge))"
    return [
        "The variances of a user's bias and profile are, in the code below,",
        f"`{model.prior.residual_variance!r} * np.diag({inverse})`.",
    ]
