"""Trainings with noise that can be repeated: the library itself offers no such option."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from taciturn.mechanisms.noise import InsecureTestNoise


@contextmanager
def known_noise(seed: int) -> Iterator[None]:
    """Let run folders begin with the test noise of a seed; their releases are void."""
    with patch("taciturn.mechanisms.run_folder.SecureNoise", lambda: InsecureTestNoise(seed)):
        yield
