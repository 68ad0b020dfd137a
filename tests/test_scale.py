"""Rating scales: parsing, and encoding of ratings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import InvalidParameter
from taciturn.scale import Scale
from tests.narrow import present


@pytest.mark.parametrize(
    ("text", "low", "high", "step", "dtype"),
    [
        ("1:5", 1, 5, None, "float32"),
        ("1:5:1", 1, 5, 1, "uint8"),
        ("0.5:5:0.5", 0.5, 5, 0.5, "uint8"),
        ("-10:10:0.01", -10, 10, 0.01, "uint16"),
        ("0:1:0.1", 0, 1, 0.1, "uint8"),
    ],
)
def test_a_scale_is_parsed_and_printed(
    text: str, low: float, high: float, step: float | None, dtype: str
) -> None:
    scale = Scale.parse(text)
    assert (scale.low, scale.high, scale.step) == (low, high, step)
    assert scale.dtype == dtype
    assert str(scale) == text
    assert scale.range == high - low


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5:1",
        "1:1",
        "a:b",
        "1:5:0",
        "1:5:-1",
        "1:5:3",
        "1:5:1:1",
        "nan:5",
        "0:inf",
        "-1e308:1e308",
    ],
)
def test_bad_scales_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        Scale.parse(text)


@given(st.sampled_from(["1:5:1", "0.5:5:0.5", "0:1:0.1", "-10:10:0.01"]), st.data())
def test_values_on_the_steps_are_encoded_exactly(text: str, data: st.DataObject) -> None:
    scale = Scale.parse(text)
    step = present(scale.step)
    levels = round(scale.range / step)
    codes = data.draw(st.lists(st.integers(0, levels), min_size=1, max_size=50))
    values = scale.low + step * np.array(codes)
    encoded, outside = scale.encode(values)
    assert encoded.tolist() == codes and not outside.any()
    assert np.allclose(scale.decode(encoded), values, atol=1e-6)


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_any_value_is_stored_on_the_scale(values: list[float]) -> None:
    for text in ("1:5", "1:5:1"):
        scale = Scale.parse(text)
        encoded, outside = scale.encode(np.array(values))
        decoded = scale.decode(encoded)
        assert (decoded >= 1).all() and (decoded <= 5).all()
        for value, stored, out in zip(values, decoded, outside, strict=True):
            assert out or abs(value - stored) < 1e-3
