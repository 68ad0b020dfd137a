"""Profiles that are folded in: a slow reference, edge cases and refused input."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.errors import InvalidInput, InvalidParameter
from taciturn.model.assumptions import BIAS_SHRUNK, RESIDUAL_FOLD_IN
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Prior
from tests.model.helpers import SCALE, factor_model, profiles


def test_folding_in_recovers_the_profile_that_made_the_ratings() -> None:
    items = profiles(400, 3, 1)
    items = replace(items, biases=items.biases * 0.2)
    model = FactorModel(scale=SCALE, mean=3.0, users=None, items=items)
    truth, bias = profiles(1, 3, 0).factors[0] * 0.3, 0.2
    values = model.with_user(bias, truth).predict_rows(np.zeros(400, int), np.arange(400))
    folded = model.fold_in(dict(zip(items.ids.to_list(), values.tolist(), strict=True)))
    assert np.allclose(folded.factors, truth, atol=0.05) and abs(folded.bias - bias) < 0.05


def test_one_rating_moves_a_bias_by_less_than_one_star() -> None:
    model = factor_model()
    assert abs(model.fold_in({10: 5.0}).bias) < 1.0


def test_ratings_of_unknown_items_are_ignored() -> None:
    model = factor_model(items=5, width=2)
    one, two = model.fold_in({13: 4.0}), model.fold_in({999: 1.0, 13: 4.0, 998: 2.0})
    assert one.bias == two.bias and np.array_equal(one.factors, two.factors)
    assert one.unknown_items == () and two.unknown_items == (999, 998)


def test_ids_are_converted_to_those_of_the_model() -> None:
    """The keys of a JSON object are text."""
    numbers: dict[int | str, float] = {10: 5.0, 13: 1.5, 999: 3.0}
    texts: dict[int | str, float] = {str(item): value for item, value in numbers.items()}
    model = factor_model()
    one, two = model.fold_in(numbers), model.fold_in(texts)
    assert one.bias == two.bias != 0 and np.array_equal(one.factors, two.factors)
    assert two.unknown_items == ("999",)
    items = model.item_profiles
    named = replace(model, items=replace(items, ids=items.ids.cast(pl.String)))
    assert named.fold_in(numbers).bias == one.bias


@pytest.mark.parametrize("ratings", [{999: 3.0}, {"999": 3.0}, {2**63: 3.0}])
def test_ratings_of_no_known_item_are_refused(ratings: Any) -> None:
    with pytest.raises(InvalidInput, match=r"rate at least one of its items, by its id, .* 10"):
        factor_model().fold_in(ratings)


@pytest.mark.parametrize(
    "ratings", [{"010": 3.0}, {" 10": 3.0}, {"+10": 3.0}, {"1_0": 3.0}, {"ten": 3.0}, {10.0: 3.0}]
)
def test_ids_that_are_no_whole_numbers_are_refused(ratings: Any) -> None:
    """010 is not 10, here as in files."""
    with pytest.raises(InvalidInput, match="must be whole numbers"):
        factor_model().fold_in(ratings)


def test_a_mixture_of_numbers_and_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="all whole numbers or all text"):
        factor_model().fold_in({10: 3.0, "13": 2.0})


@pytest.mark.parametrize("prior", [None, Prior(residual_variance=0.5, variances=(0.1, 0.2, 0.3))])
@pytest.mark.parametrize("regularization", [1.0, 4.0])
def test_a_profile_is_the_minimum_of_the_documented_sum(
    prior: Prior | None, regularization: float
) -> None:
    """The regression of docs/reference/release-format.md; without a prior, from the assumptions."""
    model = replace(factor_model(width=2), prior=prior)
    own: dict[int | str, float] = {10: 5.0, 13: 1.5, 22: 4.0, 40: 2.0}
    items = model.item_profiles
    rows = [items.ids.to_list().index(item) for item in own]
    design = np.column_stack([np.ones(4), items.factors[rows].astype(float)])
    target = np.array([*own.values()]) - 3.0 - items.biases[rows]
    residual = RESIDUAL_FOLD_IN**2 if prior is None else prior.residual_variance
    assumed = [BIAS_SHRUNK**2, *(items.factors.astype(float) ** 2).mean(axis=0)]
    variances = assumed if prior is None else prior.variances
    # Least squares of the ratings and of rows for the prior, each over its standard deviation.
    stacked = np.vstack(
        [design / residual**0.5, np.diag((regularization / np.array(variances)) ** 0.5)]
    )
    aims = np.concatenate([target / residual**0.5, np.zeros(3)])
    expected = np.linalg.lstsq(stacked, aims)[0]
    found = model.fold_in(own, regularization=regularization)
    assert found.bias == pytest.approx(expected[0], rel=1e-6)
    assert np.allclose(found.factors, expected[1:], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("residual", "variance"), [(1e-320, 1.0), (1.0, 1e30), (1.0, 1e-320), (1e30, 1e-300)]
)
def test_a_profile_is_finite_for_any_prior(residual: float, variance: float) -> None:
    """A forged release may state any positive variances."""
    prior = Prior(residual_variance=residual, variances=(variance, 0.5, variance))
    found = replace(factor_model(width=2), prior=prior).fold_in({10: 5.0})
    assert np.isfinite([found.bias, *found.factors]).all()


@pytest.mark.parametrize("bad", [6.0, 0.5, float("nan"), "5", None])
def test_a_rating_off_the_scale_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        factor_model().fold_in({10: bad})


def test_ratings_that_are_no_mapping_are_refused() -> None:
    ratings: Any = [5.0]
    with pytest.raises(InvalidParameter, match="map item ids"):
        factor_model().fold_in(ratings)


def test_a_prior_of_another_width_is_refused() -> None:
    prior = Prior(residual_variance=1.0, variances=(1.0, 1.0))
    with pytest.raises(InvalidParameter, match="5 variances"):
        replace(factor_model(width=4), prior=prior).fold_in({10: 3.0})


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf")])
def test_a_regularization_that_is_not_positive_is_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="regularization"):
        factor_model().fold_in({10: 3.0}, regularization=bad)


def test_a_model_without_items_cannot_fold_in() -> None:
    with pytest.raises(InvalidParameter, match="no item profiles"):
        replace(factor_model(), items=None).fold_in({10: 3.0})
