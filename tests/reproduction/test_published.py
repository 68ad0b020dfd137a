"""The paper's published numbers and the values derived from them."""

import pytest

from taciturn.accounting.paper import paper_account
from taciturn.errors import InvalidParameter
from taciturn.reproduction.published import (
    DELTA,
    DELTA_I,
    SETS,
    Axis,
    Quantity,
    configuration,
    figure,
    figures,
    published_iterations,
)


def test_there_are_27_figures_on_three_sets() -> None:
    assert list(figures()) == list(range(1, 28))
    assert {each.data for each in figures().values()} == set(SETS.values())
    for each in figures().values():
        for curve in each.curves:
            assert list(curve.points) == sorted(curve.points)
            assert curve.points[0][1] > 0


@pytest.mark.parametrize(
    ("number", "iterations"),
    [
        (4, [791, 1127, 1265, 2109, 2240, 2489]),
        (5, [918, 958, 1221, 1292, 1256, 1226]),
        (6, [275, 478, 903, 1673, 1408, 1509]),
    ],
)
def test_iterations_follow_from_the_overall_epsilon(number: int, iterations: list[int]) -> None:
    found = figure(number)
    (rmse,) = (curve for curve in found.curves if curve.quantity is Quantity.RMSE)
    assert [published_iterations(found, rmse.series, x) for x, _ in rmse.points] == iterations
    # Equal to the lengths of the curves in figures 1 to 3.
    curves = figure(number - 3)
    ends = [curves.ends[f"eps_i={x:.2f}"] + 1 for x, _ in rmse.points]
    assert ends == iterations


@pytest.mark.parametrize("number", [4, 5, 6])
def test_the_overall_epsilon_equals_that_of_the_paper_within_reading_accuracy(number: int) -> None:
    found = figure(number)
    (line,) = (curve for curve in found.curves if curve.quantity is Quantity.EPSILON_PAPER)
    for epsilon_i, plotted in line.points:
        account = paper_account(
            epsilon_i=epsilon_i,
            delta_i=DELTA_I,
            iterations=published_iterations(found, line.series, epsilon_i),
            delta=DELTA,
        )
        assert account.epsilon_paper == pytest.approx(plotted, abs=0.002)


def test_figures_of_the_same_runs_have_the_same_iterations() -> None:
    for numbers in ((7, 10, 13), (20, 23, 26)):
        lines = [figure(number).curves for number in numbers]
        shared = {
            (curve.series, x, published_iterations(figure(number), curve.series, x))
            for number, curves in zip(numbers, lines, strict=True)
            for curve in curves
            if curve.series != "non-private"
            for x, _ in curve.points
        }
        assert len(shared) == sum(len(curve.points) for curve in figure(numbers[1]).curves)


def test_curves_without_noise_have_the_iterations_of_the_least_noisy_one() -> None:
    sweep = figure(7)
    assert published_iterations(sweep, "non-private", 60) == published_iterations(
        sweep, "eps_i=0.90", 60
    )
    assert published_iterations(figure(1), "non-private", 0) == 2491


def test_a_point_has_the_configuration_of_its_run() -> None:
    assert configuration(figure(4), "rmse", 0.3).epsilon_i == 0.3
    assert configuration(figure(8), "eps_i=0.20", 60).factors == 60
    assert configuration(figure(8), "eps_i=0.20", 44).factors == 48  # as run for the paper
    assert configuration(figure(21), "non-private", 0.001).step_size == 0.001
    assert configuration(figure(21), "non-private", 0.001).epsilon_i is None
    assert figure(16).axis is Axis.FACTORS


def test_there_is_no_figure_28() -> None:
    with pytest.raises(InvalidParameter, match="1 to 27"):
        figure(28)
