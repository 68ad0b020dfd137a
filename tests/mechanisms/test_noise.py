"""Noise sources: the same noise at the same address, never shared between processes."""

import os

import numpy as np
import pytest

from taciturn import _core
from taciturn.accounting.events import Noise
from taciturn.errors import InvalidParameter, NoiseReuse
from taciturn.mechanisms.noise import InsecureTestNoise, SecureNoise, _restored
from tests import noise_keys

KNOWN = [-273642, 33329, -377326, 261721]


def test_a_forked_process_may_not_use_the_noise() -> None:
    source = SecureNoise()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            source._secret()
            os.write(writer, b"drawn")
        except NoiseReuse:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"refused"
    for handle in (reader, writer):
        os.close(handle)


def test_addresses_do_not_overlap() -> None:
    source = InsecureTestNoise(1)
    places = [(e, b) for e in (0, 1, 255, 256) for b in (0, 1, 255, 2**32 - 1)]
    words = np.concatenate([source._words(*place, 64).copy() for place in places])
    assert np.unique(words).size == words.size
    short = source._words(5, 6, 1000).copy()
    assert np.array_equal(source._words(5, 6, 2**18)[:1000], short)
    for event, block in ((-1, 0), (2**48, 0), (0, 2**32), (0, -1)):
        with pytest.raises(InvalidParameter):
            source._words(event, block, 1)


def test_test_noise_has_known_numbers_at_an_address() -> None:
    """The numbers at an address are part of the run format and must never change."""
    drawn = InsecureTestNoise(7)._integers(_core.Ziggurat(2.0**20), event=1, block=2, count=4)
    assert drawn.tolist() == KNOWN


def test_fingerprints_are_keyed_and_framed() -> None:
    source, other = InsecureTestNoise(1), InsecureTestNoise(2)
    prints = {
        source._fingerprint(0, b"ab", b"c"),
        source._fingerprint(0, b"a", b"bc"),
        source._fingerprint(0, b"abc"),
        source._fingerprint(0, b"abc", b""),
        source._fingerprint(1, b"abc"),
        other._fingerprint(0, b"abc"),
    }
    assert len(prints) == 6
    assert source._fingerprint(0, b"abc") == source._fingerprint(
        0, np.frombuffer(b"abc", "u1").data
    )


def test_secure_keys_are_fresh_and_have_32_bytes() -> None:
    with noise_keys.fresh():
        keys = {SecureNoise()._secret() for _ in range(3)}
    assert len(keys) == 3
    assert SecureNoise()._secret() not in keys
    with pytest.raises(InvalidParameter, match="32 bytes"):
        _restored(b"short", Noise.SECURE)
