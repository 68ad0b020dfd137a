"""Splits: every rating is in exactly one part, and a seed always gives the same split."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import (
    _uniform,
    k_fold,
    leave_last_out,
    random_split,
    stratified_split,
)
from taciturn.data.synthetic import PRESETS, SyntheticSize, synthetic_ratings
from taciturn.errors import InvalidParameter
from tests.narrow import present

RATINGS = synthetic_ratings("10k")


def pairs(ratings: Ratings) -> set[tuple[int, int, float]]:
    return set(ratings.to_frame().select("user_id", "item_id", "rating").rows())


def check_partition(whole: Ratings, train: Ratings, test: Ratings) -> None:
    assert pairs(train) | pairs(test) == pairs(whole)
    assert len(train) + len(test) == len(whole)
    for part in (train, test):
        assert part.user_ids.equals(whole.user_ids) and part.item_ids.equals(whole.item_ids)


@pytest.mark.parametrize("split", [random_split, stratified_split])
def test_a_split_holds_out_its_fraction(split: Callable[..., tuple[Ratings, Ratings]]) -> None:
    train, test = split(RATINGS, 0.2, seed=3)
    check_partition(RATINGS, train, test)
    # For the random split 8 standard errors; the stratified one rounds down for each user.
    expected = 0.2 * len(RATINGS)
    slack = 8 * np.sqrt(0.16 * len(RATINGS)) if split is random_split else len(RATINGS.user_ids)
    assert abs(len(test) - expected) <= slack
    again = split(RATINGS, 0.2, seed=3)[1]
    assert pairs(again) == pairs(test)
    assert pairs(split(RATINGS, 0.2, seed=4)[1]) != pairs(test)


def test_removing_a_rating_moves_no_other() -> None:
    keep = np.ones(len(RATINGS), dtype=bool)
    keep[len(RATINGS) // 3] = False
    # Read anew, so that users and items left without ratings are gone and indices shift.
    fewer = load(RATINGS.select(keep).to_frame(), scale=RATINGS.scale)
    gone = pairs(RATINGS) - pairs(fewer)
    for before, after in (
        (random_split(RATINGS, 0.2, 1), random_split(fewer, 0.2, 1)),
        (next(k_fold(RATINGS, 3)), next(k_fold(fewer, 3))),
    ):
        assert pairs(before[1]) ^ pairs(after[1]) <= gone


def test_coins_are_fair_and_independent() -> None:
    """Across ratings of one user, of one item, and across seeds: 6 standard errors each."""
    first, second = (_uniform(RATINGS, seed) for seed in (0, 1))
    count = len(RATINGS)
    assert abs(first.mean() - 0.5) < 6 * np.sqrt(1 / 12 / count)
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(count)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / np.sqrt(count)
    by_item = first[np.argsort(RATINGS.by_user.columns, kind="stable")]
    assert abs(np.corrcoef(by_item[1:], by_item[:-1])[0, 1]) < 6 / np.sqrt(count)
    counts = np.histogram(first, bins=50, range=(0, 1))[0]
    assert chisquare(counts).pvalue > 1e-7


def test_stratified_is_exact_for_every_user() -> None:
    hundred = load(([1] * 100, list(range(100)), [3] * 100), scale="1:5")
    assert len(stratified_split(hundred, 0.29)[1]) == 29
    _, test = stratified_split(RATINGS, 0.25)
    counts = np.diff(RATINGS.by_user.starts)
    assert np.array_equal(np.diff(test.by_user.starts), np.floor(counts * 0.25))


def test_folds_cover_everything_once() -> None:
    tests = []
    for train, test in k_fold(RATINGS, 5, seed=1):
        check_partition(RATINGS, train, test)
        tests.append(pairs(test))
    assert len(set.union(*tests)) == sum(map(len, tests)) == len(RATINGS)


def test_last_ratings_are_left_out() -> None:
    users = [1, 1, 1, 2, 2, 3]
    items = [1, 2, 3, 1, 2, 1]
    times = [30, 10, 20, 5, 6, 1]
    ratings = load((users, items, [3] * 6, times), scale="1:5", timestamps=True)
    train, test = leave_last_out(ratings)
    check_partition(ratings, train, test)
    assert {(u, i) for u, i, _ in pairs(test)} == {(1, 1), (2, 2)}
    assert sorted(present(test.timestamps).tolist()) == [6, 30]
    two = leave_last_out(ratings, 2)[1]
    assert {(u, i) for u, i, _ in pairs(two)} == {(1, 1), (1, 3)}
    with pytest.raises(InvalidParameter, match="timestamps"):
        leave_last_out(RATINGS)


def test_a_split_does_not_depend_on_the_order_of_rows() -> None:
    frame = RATINGS.to_frame()
    shuffled = load(frame.sample(fraction=1, shuffle=True, seed=1), scale=RATINGS.scale)
    compact = load(frame, scale=RATINGS.scale)
    assert pairs(random_split(shuffled, 0.1)[1]) == pairs(random_split(compact, 0.1)[1])


@pytest.mark.parametrize("fraction", [0, 1, -0.1, np.nan, "x"])
def test_bad_fractions_are_refused(fraction: float) -> None:
    for split in (random_split, stratified_split):
        with pytest.raises(InvalidParameter, match="fraction"):
            split(RATINGS, fraction)


def test_bad_folds_bad_seeds_and_tiny_sets_are_refused() -> None:
    bad_folds: tuple[Any, ...] = (0, 1, 2.5)
    for folds in bad_folds:
        with pytest.raises(InvalidParameter):
            next(k_fold(RATINGS, folds))
    bad_seeds: tuple[Any, ...] = (-1, 1.5, True, 2**64)
    for seed in bad_seeds:
        with pytest.raises(InvalidParameter, match="seed"):
            random_split(RATINGS, 0.1, seed)
    with pytest.raises(InvalidParameter, match="one part empty"):
        random_split(load(([1], [1], [3]), scale="1:5"), 0.1)


@pytest.mark.parametrize("keep", [np.ones(3, dtype=bool), np.ones(len(RATINGS))])
def test_bad_selections_are_refused(keep: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="boolean"):
        RATINGS.select(keep)


# --- synthetic ------------------------------------------------------------------------------------


def test_synthetic_ratings_are_the_same_whatever_the_threads() -> None:
    size = SyntheticSize(users=9000, items=300, ratings=100_000)
    one, two = (synthetic_ratings(size, seed=5, threads=threads) for threads in (1, 4))
    assert one.to_frame().equals(two.to_frame())
    other = synthetic_ratings(size, seed=6)
    assert not one.to_frame().equals(other.to_frame())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["10k", "100k", "1m"])
def test_synthetic_ratings_look_like_real_ones(name: str) -> None:
    size, ratings = PRESETS[name], synthetic_ratings(name)
    assert ratings.shape == (size.users, size.items)
    assert abs(len(ratings) / size.ratings - 1) < 0.15
    counts = np.sort(np.diff(ratings.by_item.starts))[::-1]
    top = counts[: len(counts) // 10].sum() / counts.sum()
    assert 0.25 < top < 0.6  # share of ratings of the most popular tenth of the items
    shares = np.bincount(ratings.by_user.codes, minlength=5) / len(ratings)
    assert shares.min() > 0.01 and shares.argmax() in (2, 3)
    # Low rank plus noise: item means explain a part of the variance.
    values = ratings.values()
    means = np.bincount(ratings.by_user.columns, values) / np.maximum(
        np.bincount(ratings.by_user.columns), 1
    )
    explained = 1 - np.var(values - means[ratings.by_user.columns]) / np.var(values)
    assert 0.05 < explained < 0.5


@pytest.mark.parametrize(
    "size",
    [
        "2k",
        SyntheticSize(users=0, items=5, ratings=5),
        SyntheticSize(users=10, items=10, ratings=100),
    ],
)
def test_impossible_sizes_are_refused(size: SyntheticSize | str) -> None:
    with pytest.raises(InvalidParameter):
        synthetic_ratings(size)
