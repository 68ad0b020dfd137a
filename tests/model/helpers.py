"""Random profiles and models."""

from dataclasses import replace

import numpy as np
import polars as pl

from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest
from taciturn.model.profiles import Profiles
from taciturn.scale import Scale

SCALE = Scale(low=1, high=5, step=1)


def profiles(
    count: int, width: int, seed: int, prefix: str | None = None, has_variances: bool = False
) -> Profiles:
    """Random profiles with ids 10, 13, 16, …, optionally with a prefix."""
    random = np.random.default_rng(seed)
    numbers = np.arange(count) * 3 + 10
    ids = pl.Series([f"{prefix}{n}" for n in numbers]) if prefix else pl.Series(numbers)
    found = {
        "biases": random.normal(size=count).astype(np.float32),
        "factors": random.normal(size=(count, width)).astype(np.float32),
    }
    if has_variances:
        found["bias_variances"] = random.uniform(size=count).astype(np.float32)
        found["variances"] = random.uniform(size=(count, width)).astype(np.float32)
    return Profiles(ids=ids, **found)


def factor_model(users: int = 30, items: int = 50, width: int = 4, seed: int = 0) -> FactorModel:
    """A random model with variances."""
    return FactorModel(
        scale=SCALE,
        mean=3.0,
        users=profiles(users, width, seed, has_variances=True),
        items=profiles(items, width, seed + 1, has_variances=True),
        residual_variance=0.7,
    )


INTEREST = Interest(rating_weight=0.5, unseen_weight=0.3, regularization=0.02)


def with_interest(model: FactorModel, columns: int = 4, seed: int = 5) -> FactorModel:
    """The model with random interest vectors of the axes that it has."""
    random = np.random.default_rng(seed)
    users, items = (
        each
        if each is None
        else replace(each, interests=random.normal(size=(len(each), columns)).astype(np.float32))
        for each in (model.without_interest().users, model.without_interest().items)
    )
    return replace(model, users=users, items=items, interest=INTEREST)
