"""Model of public ratings: recovered from ratings drawn from a known model."""

import numpy as np
import polars as pl
import pytest

from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale
from taciturn.solvers.als.public_model import PublicModel, fit_public
from tests.solvers.helpers import random_ratings

SCALE = Scale.parse("-2:2")
"""Scale of width 4, so that variances are in the units of the model."""


def drawn(
    users: int, items: int = 60, factors: int = 2, *, seed: int = 1, density: float = 0.5
) -> tuple[Ratings, np.ndarray]:
    """Ratings with noise of variance 1, and the items they were drawn from, bias first.

    The items depend on their number alone, the users on the seed.
    """
    world, random = np.random.default_rng(0), np.random.default_rng(seed)
    rows = world.normal(size=(items, 1 + factors)) * [0.7, *[0.8, 0.5, 0.4][:factors]]
    of_users = random.normal(size=(users, factors))
    values = 0.5 * random.normal(size=(users, 1)) + rows[:, 0] + of_users @ rows[:, 1:].T
    values += random.normal(size=values.shape)
    users_of, items_of = np.nonzero(random.random(values.shape) < density)
    table = {
        "user_id": users_of,
        "item_id": items_of,
        "rating": np.clip(values[users_of, items_of], -4, 4),
    }
    return load(pl.DataFrame(table), scale="-4:4"), rows


@pytest.fixture(scope="module")
def model() -> PublicModel:
    return fit_public(drawn(600)[0], SCALE)


def test_factors_are_those_that_the_ratings_support(model: PublicModel) -> None:
    assert model.factors == 2


def test_items_are_recovered_up_to_a_rotation(model: PublicModel) -> None:
    rows = drawn(600)[1]
    found, true = model.rows[:, 1:], rows[:, 1:]
    assert np.corrcoef(model.rows[:, 0], rows[:, 0])[0, 1] > 0.98
    # Products of items are covariances of their ratings over users, whatever the rotation.
    products = (found @ found.T).ravel(), (true @ true.T).ravel()
    assert np.corrcoef(*products)[0, 1] > 0.98
    explained = (found**2).sum(axis=0)
    assert explained[0] > explained[1]


def test_variances_of_users_and_residuals_are_learnt(model: PublicModel) -> None:
    assert model.residual == pytest.approx(1.0, abs=0.05)
    assert model.bias == pytest.approx(0.5, abs=0.1)


def test_ratings_of_chance_support_no_factors() -> None:
    found = fit_public(random_ratings(users=300, items=40), Scale.parse("1:5:1"))
    assert found.factors == 0 and found.rows.shape == (40, 1)


def test_items_with_fewer_ratings_are_less_certain() -> None:
    ratings, _ = drawn(300)
    keep = (ratings.by_user.columns >= 30) | (np.random.default_rng(0).random(len(ratings)) < 0.05)
    found = fit_public(ratings.select(keep), SCALE)
    assert found.uncertainty[:30].min() > found.uncertainty[30:].max()
    assert (found.uncertainty <= 1.01).all()


def test_the_fit_is_deterministic(model: PublicModel) -> None:
    again = fit_public(drawn(600)[0], SCALE)
    np.testing.assert_array_equal(again.rows, model.rows)


def test_an_empty_set_is_refused() -> None:
    ratings, _ = drawn(3)
    with pytest.raises(InvalidParameter, match="public ratings are empty"):
        fit_public(ratings.select(np.zeros(len(ratings), dtype=bool)), SCALE)
