"""Lists of distinct ids: the kernels that find ids by their numbers."""

import numpy as np
import pytest

from taciturn import _core

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("low", "ids"),
    [(5, [4]), (5, [9]), (1, [LEAST]), (LEAST, [MOST]), (-1, [MOST]), (MOST, [LEAST])],
)
def test_ids_out_of_range_are_refused_by_the_kernels(low: int, ids: list[int]) -> None:
    numbers, present = np.array(ids), np.zeros(4, dtype=np.bool_)
    with pytest.raises(IndexError, match="out of range"):
        _core.mark(numbers, low, present)
    assert not present.any()
    with pytest.raises(IndexError, match="out of range"):
        _core.look_up(numbers, low, np.zeros(4, dtype=np.int32), np.zeros(1, dtype=np.int32))


@pytest.mark.parametrize(
    ("low", "dtype"),
    [(LEAST, "int64"), (-2, "int64"), (MOST - 3, "int64"), (-2, "int32"), (2**31 - 4, "int32")],
)
def test_ids_in_range_are_found(low: int, dtype: str) -> None:
    numbers, present = np.array([low + 3, low], dtype=dtype), np.zeros(4, dtype=np.bool_)
    _core.mark(numbers, low, present)
    assert present.tolist() == [True, False, False, True]
    found = np.zeros(2, dtype=np.int32)
    _core.look_up(numbers, low, np.array([40, 41, 42, 43], dtype=np.int32), found)
    assert found.tolist() == [43, 40]
