"""Most similar items, compared with sorting all cosines."""

from dataclasses import replace

import numpy as np
import pytest

from taciturn.errors import InvalidParameter
from taciturn.model import similarity
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Floats
from taciturn.model.score import By
from taciturn.model.similarity import Similarity, unit_factors
from taciturn.recommend.serve import Recommender
from tests.model.helpers import factor_model, with_interest

MODEL = with_interest(factor_model(items=80), columns=5)


def reference(model: FactorModel, by: By, item: int, count: int) -> tuple[list[int], list[float]]:
    unit = unit_factors(model, by).astype(np.float64)
    cosines = unit @ unit[item]
    order = sorted(set(range(len(unit))) - {item}, key=lambda other: (-cosines[other], other))
    return order[:count], cosines[order[:count]].tolist()


@pytest.mark.parametrize("by", list(By))
@pytest.mark.parametrize("count", [1, 10, 79, 500])
def test_the_nearest_items_have_the_largest_cosines(by: By, count: int) -> None:
    found = Similarity(model=MODEL, by=by)
    for item in (0, 7, 79):
        rows, cosines = found.nearest(item, count)
        expected, exact = reference(MODEL, by, item, count)
        assert rows.tolist() == expected
        assert np.allclose(cosines, exact, atol=1e-6)


def test_ties_go_to_the_earlier_item_and_zeros_are_refused() -> None:
    """Powers of two have exact cosines."""
    factors = np.zeros((20, 2), dtype=np.float32)
    factors[3:15, 0] = 2.0 ** np.arange(12)
    factors[15:18, 1] = -1
    model = factor_model(items=20, width=2)
    model = replace(model, items=replace(model.item_profiles, factors=factors, variances=None))
    rows, cosines = Similarity(model=model, by=By.RATING).nearest(5, 13)
    assert rows.tolist() == [3, 4, *range(6, 15), 0, 1]
    assert cosines.tolist() == [1.0] * 11 + [0.0] * 2
    with pytest.raises(InvalidParameter, match="item .* has no rating factors to compare"):
        Similarity(model=model, by=By.RATING).nearest(0, 3)


def test_the_only_item_has_no_neighbours() -> None:
    model = factor_model(items=1)
    rows, cosines = Similarity(model=model, by=By.RATING).nearest(0, 10)
    assert rows.size == cosines.size == 0


def test_norms_are_computed_once_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    norms = similarity._norms

    def counted(rows: Floats) -> Floats:
        computed.append(len(rows))
        return norms(rows)

    monkeypatch.setattr(similarity, "_norms", counted)
    recommender = Recommender(MODEL)
    for item in (10, 13, 16):
        for by in By:
            assert len(recommender.similar(item, 5, by=by)) == 5
    assert len(computed) == 2
