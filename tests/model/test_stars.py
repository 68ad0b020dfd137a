"""Probabilities of stars, and ratings inside prediction intervals."""

from statistics import NormalDist

import numpy as np
import pytest

from taciturn.errors import InvalidParameter
from taciturn.model.stars import interval_credits, star_probabilities
from taciturn.scale import Scale

STARS = Scale.parse("1:5:1")
SHARES = (0.5, 0.8, 0.95)


def test_each_star_has_the_probability_of_its_cell() -> None:
    (found,) = star_probabilities(STARS, np.array([3.7]), np.array([0.9]))
    below = [NormalDist(3.7, 0.9).cdf(edge) for edge in (1.5, 2.5, 3.5, 4.5)]
    assert found == pytest.approx(np.diff([0.0, *below, 1.0]))
    far = star_probabilities(STARS, np.array([-50.0, 60.0]), np.array([0.1, 0.1]))
    assert np.array_equal(far, [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])


def test_a_scale_without_a_step_has_no_stars() -> None:
    with pytest.raises(InvalidParameter, match="has no step"):
        star_probabilities(Scale.parse("1:5"), np.array([3.0]), np.array([1.0]))


@pytest.mark.parametrize("scale", [STARS, Scale.parse("0.5:5:0.5"), Scale.parse("1:2:1")])
def test_expected_credits_are_the_nominal_coverage(scale: Scale) -> None:
    """Exactly, if ratings have the predicted probabilities, also at the ends of the scale."""
    scores, deviations = np.array([1.1, 3.3, 4.9, 7.0]), np.array([0.9, 0.4, 1.2, 1.0])
    probabilities, expected = star_probabilities(scale, scores, deviations), np.zeros((3, 4))
    for level, chance in zip(scale.levels, probabilities.T, strict=True):
        values = np.full(4, level)
        expected += chance * np.array(interval_credits(scale, scores, deviations, values, SHARES))
    assert np.allclose(expected.T, SHARES)


def test_without_a_step_a_rating_is_inside_or_not() -> None:
    values = np.array([3.0, 3.6, 3.7, 5.0])
    scores, deviations = np.full(4, 3.0), np.full(4, 1.0)
    (found,) = interval_credits(Scale.parse("1:5"), scores, deviations, values, [0.5])
    assert found.tolist() == [1, 1, 0, 0]
