"""Trainings with reproducible noise, which the library itself does not offer."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from taciturn.mechanisms.noise import InsecureTestNoise


@contextmanager
def known_noise(seed: int) -> Iterator[None]:
    """Run folders created here use the test noise of a seed; their certificates are void."""
    with patch("taciturn.mechanisms.run_folder.SecureNoise", lambda: InsecureTestNoise(seed)):
        yield
