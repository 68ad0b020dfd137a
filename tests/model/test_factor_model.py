"""Predictions of fits, releases and recommenders equal the formula of the model."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.ledger import Ledger
from taciturn.errors import InvalidParameter, NotPersonalised
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from taciturn.solvers.contract import Fit
from tests.model.helpers import SCALE, factor_model, profiles
from tests.narrow import present
from tests.release.helpers import small_fit, write_small


def pairs(model: FactorModel) -> tuple[np.ndarray, np.ndarray]:
    """Every user row with every item row."""
    users, items = len(model.user_profiles), len(model.item_profiles)
    return np.repeat(np.arange(users), items), np.tile(np.arange(items), users)


def plain(model: FactorModel, user: int, item: int) -> float:
    """Score of one pair, in 64 bits."""
    users, items = model.user_profiles, model.item_profiles
    products = zip(users.factors[user].tolist(), items.factors[item].tolist(), strict=True)
    bias = float(users.biases[user]) + float(items.biases[item])
    return float(model.mean + bias + sum(u * i for u, i in products))


@pytest.mark.parametrize("width", [0, 1, 4, 33])
def test_scores_match_the_plain_formula(width: int) -> None:
    model = factor_model(7, 9, width)
    users, items = pairs(model)
    expected = [plain(model, user, item) for user, item in zip(users, items, strict=True)]
    assert np.allclose(model.score_rows(users, items), expected, atol=1e-5)
    clipped = np.clip(expected, SCALE.low, SCALE.high)
    assert np.allclose(model.predict_rows(users, items), clipped, atol=1e-5)


def test_predictions_stay_on_the_scale_and_scores_do_not() -> None:
    model = factor_model()
    rows = pairs(model)
    scores, predicted = model.score_rows(*rows), model.predict_rows(*rows)
    assert scores.min() < SCALE.low and scores.max() > SCALE.high
    assert predicted.min() == SCALE.low and predicted.max() == SCALE.high


def test_scores_keep_the_precision_of_the_factors() -> None:
    model = factor_model()
    assert model.score_rows(*pairs(model)).dtype == np.float32

    def wide(narrow: Profiles) -> Profiles:
        factors = narrow.factors.astype(float) + 1e-12
        return Profiles(ids=narrow.ids, biases=narrow.biases.astype(float), factors=factors)

    users, items = wide(model.user_profiles), wide(model.item_profiles)
    exact = FactorModel(scale=SCALE, mean=0.1, users=users, items=items)
    scores = exact.score_rows(*pairs(exact))
    assert scores.dtype == exact.predict_rows(*pairs(exact)).dtype == np.float64
    expected = 0.1 + users.biases[:, None] + items.biases + users.factors @ items.factors.T
    assert np.allclose(scores, expected.ravel(), rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("solver", ["gradient", "als", "bias", "non-private"])
def test_a_fit_a_release_and_a_recommender_predict_alike(solver: str, tmp_path: Path) -> None:
    fit = write_small(tmp_path / "r", solver)
    release = load_release(tmp_path / "r")
    users, items = pairs(fit.model)
    predicted = fit.model.predict_rows(users, items)
    assert np.array_equal(fit.owner_model.predict_rows(users, items), predicted)
    assert np.array_equal(release.model.predict_rows(users, items), predicted)
    recommender = Recommender(release)
    model = release.model
    ids = model.user_profiles.ids.gather(users), model.item_profiles.ids.gather(items)
    assert np.array_equal(recommender.predict(*ids), predicted)
    expected = [plain(fit.model, user, item) for user, item in zip(users, items, strict=True)]
    assert np.allclose(predicted, np.clip(expected, 1, 5), atol=1e-5)
    # Lists by rating have the scores before clipping.
    with nullcontext() if model.factor_count else pytest.warns(NotPersonalised):
        best = recommender.recommend(model.user_profiles.ids, len(model.item_profiles), by="rating")
    scores = dict(zip(zip(*(each.to_list() for each in ids), strict=True), expected, strict=True))
    for user, item, score in best.select("user_id", "item_id", "score").iter_rows():
        assert score == pytest.approx(scores[user, item], abs=1e-5)


def test_a_profile_from_outside_scores_like_a_user_of_the_model() -> None:
    model = factor_model()
    users, rows = model.user_profiles, np.arange(len(model.item_profiles))
    guest = model.with_user(float(users.biases[3]), users.factors[3])
    zeros = np.zeros(len(rows), dtype=np.int64)
    assert np.array_equal(guest.score_rows(zeros, rows), model.score_rows(zeros + 3, rows))
    assert guest.offsets_rows(zeros[:1]) == model.offsets_rows(np.array([3]))


@pytest.mark.parametrize("bad", [[1.0], [[1.0] * 4], [np.nan] * 4, [np.inf] * 4])
def test_a_profile_that_does_not_fit_is_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="4 finite numbers"):
        factor_model(width=4).with_user(0.0, bad)
    with pytest.raises(InvalidParameter, match="bias"):
        factor_model(width=4).with_user(float("nan"), [0.0] * 4)


def test_deviations_match_sampled_profiles() -> None:
    """Within four standard errors of a variance, for two pairs."""
    model, count = factor_model(3, 3, 2), 200_000
    random = np.random.default_rng(5)
    for user, item in ((0, 1), (2, 2)):
        draws = []
        for each, row in ((model.user_profiles, user), (model.item_profiles, item)):
            bias_deviation = present(each.bias_variances)[row] ** 0.5
            bias = random.normal(each.biases[row], bias_deviation, count)
            deviations = present(each.variances)[row] ** 0.5
            draws.append((bias, random.normal(each.factors[row], deviations, (count, 2))))
        (bu, fu), (bi, fi) = draws
        ratings = 3.0 + bu + bi + (fu * fi).sum(axis=1) + random.normal(0, 0.7**0.5, count)
        squares = (ratings - plain(model, user, item)) ** 2
        found = model.standard_deviation_rows(np.array([user]), np.array([item]))
        assert found.dtype == np.float32
        assert abs(found[0] ** 2 - squares.mean()) < 4 * squares.std() / count**0.5


@pytest.mark.parametrize("lack", ["residual", "users", "items"])
def test_deviations_need_variances_on_both_axes(lack: str) -> None:
    model, rows = factor_model(), np.zeros(1, dtype=np.int64)
    assert model.has_variances and model.standard_deviation_rows(rows, rows)[0] > 0
    change: dict[str, dict[str, Any]] = {
        "residual": {"residual_variance": None},
        "users": {"users": profiles(30, 4, 0)},
        "items": {"items": profiles(50, 4, 1)},
    }
    poorer = replace(model, **change[lack])
    assert not poorer.has_variances
    with pytest.raises(InvalidParameter, match="uncertainty=True"):
        poorer.standard_deviation_rows(rows, rows)


@pytest.mark.parametrize("axis", ["user", "item"])
def test_a_missing_axis_is_refused_by_name(axis: str) -> None:
    absent: dict[str, Any] = {f"{axis}s": None}
    model, rows = replace(factor_model(), **absent), np.zeros(1, dtype=np.int64)
    assert not model.has_variances and model.factor_count == 4
    for method in (model.score_rows, model.predict_rows, model.standard_deviation_rows):
        with pytest.raises(InvalidParameter, match=f"no {axis} profiles"):
            method(rows, rows)
    with pytest.raises(InvalidParameter, match="no user or item profiles"):
        _ = replace(model, users=None, items=None).factor_count


@pytest.mark.parametrize("bad", [-1, 30])
def test_rows_out_of_range_are_refused(bad: int) -> None:
    model = factor_model(30, 30)
    good, wrong = np.array([0]), np.array([bad])
    for method in (model.score_rows, model.predict_rows, model.standard_deviation_rows):
        with pytest.raises(InvalidParameter, match="user rows"):
            method(wrong, good)
        with pytest.raises(InvalidParameter, match="item rows"):
            method(good, wrong)
    with pytest.raises(InvalidParameter, match="user rows"):
        model.offsets_rows(wrong)
    assert model.score_rows(good[:0], good[:0]).shape == (0,)


def test_axes_with_other_numbers_of_factors_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="3 factors and item profiles 4"):
        replace(factor_model(width=4), users=profiles(5, 3, 0))


@pytest.mark.parametrize(
    "change",
    [
        {"ids": pl.Series([1, 2])},
        {"biases": np.zeros(4, np.float32)},
        {"biases": np.zeros((5, 1), np.float32)},
        {"factors": np.zeros(5, np.float32)},
        {"factors": np.zeros((4, 2), np.float32)},
        {"bias_variances": np.zeros(4, np.float32)},
        {"variances": np.zeros((5, 3), np.float32)},
    ],
)
def test_profiles_of_different_lengths_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(profiles(5, 2, 0), **change)


def test_taking_rows_reorders_every_column() -> None:
    whole, order = profiles(5, 2, 0, has_variances=True), np.array([3, 0, 4])
    some = whole.take(order)
    assert len(some) == 3 and some.ids.to_list() == [19, 10, 22]
    for name in ("biases", "factors", "bias_variances", "variances"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[order])
    assert profiles(5, 2, 0).take(order).variances is None


def test_private_profiles_are_in_the_owner_model_only() -> None:
    fit: Fit = small_fit("paper")
    assert fit.model.items is None and fit.private_items is not None
    assert fit.owner_model.items is fit.private_items
    assert fit.owner_model.users is fit.model.users
    with pytest.raises(InvalidParameter, match="no item profiles"):
        fit.model.predict_rows(np.array([0]), np.array([0]))
    assert 1 <= fit.owner_model.predict_rows(np.array([0]), np.array([0]))[0] <= 5


def test_the_repr_of_a_model_has_no_counts_and_no_profiles() -> None:
    model = factor_model(width=4)
    assert repr(model) == f"FactorModel(scale={model.scale}, 4 factors)"
    assert repr(model.user_profiles) == "Profiles(4 factors)"


def test_the_model_needs_no_compiled_core() -> None:
    code = (
        "import sys, taciturn.model.factor_model\n"
        "found = {'taciturn._core', 'taciturn._internal.parallel'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_predictions_are_by_id() -> None:
    """Of models, fits and recommenders alike, also if ids are numbers that could be rows."""
    model = factor_model(users=30, items=50)
    users, items = [13, 10, 22], [16, 10, 154]
    rows = np.array([1, 0, 4]), np.array([2, 0, 48])
    expected = model.predict_rows(*rows)
    fit = Fit(solver="made up", settings={}, model=model, ledger=Ledger())
    assert np.array_equal(model.predict(users, items), expected)
    assert np.array_equal(fit.predict(users, items), expected)
    assert np.array_equal(model.predict([str(each) for each in users], items), expected)
    for predict in (model.predict, fit.predict):
        with pytest.raises(InvalidParameter, match="no user 1 "):
            predict([1], [10])
        with pytest.raises(InvalidParameter, match="no item 2 "):
            predict([10], [2])
        with pytest.raises(InvalidParameter, match="equal lengths"):
            predict([10], [10, 13])


def test_a_fit_predicts_with_its_private_profiles() -> None:
    model = factor_model()
    fit = Fit(
        solver="made up",
        settings={},
        model=replace(model, users=None),
        private_users=model.users,
        ledger=Ledger(),
    )
    assert np.array_equal(fit.predict([10], [13]), model.predict([10], [13]))
