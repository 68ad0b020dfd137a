"""Noise sources: a keyed cipher, addressed by event and block.

Noise is a function of the secret key and an address only. Threads share no state, the order of
draws does not matter, and a repeated computation draws the same noise. The same noise on two
different sums would reveal their difference, so a source belongs to one run on one dataset and to
the process that created it.
"""

import hashlib
import os
import sys
import threading
import weakref
from typing import ClassVar, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.poly1305 import Poly1305

from taciturn import _core
from taciturn._internal import validate
from taciturn.accounting.events import Noise
from taciturn.errors import InvalidParameter, NoiseReuse

Word = TypeVar("Word", np.int64, np.uint64)

FORMAT = 2
"""Version of the mapping from key and address to noise; a run resumes only under the same one."""

BLOCK = 2**16
"""Maximum number of draws from one address. Part of the format."""

EVENTS_MAX, BLOCKS_MAX = 2**48, 2**32
_STREAM_WORDS_MAX = 2**40

_ZEROS = memoryview(bytes(2**20))

_local = threading.local()


def _scratch(name: str, kind: type[Word], count: int) -> npt.NDArray[Word]:
    """Array of this thread that every call reuses, since fresh memory is slow."""
    array: npt.NDArray[Word] | None = getattr(_local, name, None)
    if array is None or array.size < count:
        array = np.empty(count, dtype=kind)
        setattr(_local, name, array)
    return array[:count]


_ERASED = "the noise key was erased when its run completed; start a new run"
_FORKED = (
    "a noise source cannot be used in a forked process, because both processes would draw the same "
    "noise; create a new source there"
)

_living: "weakref.WeakSet[NoiseSource]" = weakref.WeakSet()


class NoiseSource:
    """AES-256 in counter mode under a secret key, with one stream for each (event, block).

    The class determines the kind of noise: `SecureNoise` draws its own key, `InsecureTestNoise`
    takes a seed. No caller can pass a key and a kind; only a run folder restores a saved source.
    """

    # Slots prevent adding attributes, and so replacing a method of an instance.
    __slots__ = ("__weakref__", "_claimed", "_key", "_lost", "_process")

    _kind: ClassVar[Noise]

    def __init__(self) -> None:
        raise InvalidParameter(
            "NoiseSource cannot be created directly; use SecureNoise(), or InsecureTestNoise(seed) "
            "for tests"
        )

    def _begin(self, key: bytes) -> None:
        if len(key) != 32:
            raise InvalidParameter("a noise key must have 32 bytes")
        self._key = bytearray(key)
        self._lost: str | None = None
        self._process = os.getpid()
        self._claimed = False
        _living.add(self)

    @property
    def kind(self) -> Noise:
        """Kind of the noise: secure or test."""
        return self._kind

    def claim(self) -> None:
        """Reserve the source for one run. Every run starts at address 0, so a second is refused."""
        if self._claimed:
            raise NoiseReuse("this noise source belongs to another run; create a new source")
        self._claimed = True

    def __reduce__(self) -> NoReturn:
        raise NoiseReuse("a noise source cannot be copied: both copies would draw the same noise")

    def _integers(
        self, table: _core.Ziggurat, *, event: int, block: int, count: int
    ) -> npt.NDArray[np.int64]:
        """Draw the `count` integers at an address, with the scale of `table`; for the gate only.

        Any other caller could subtract the noise from the gate's releases. The array is scratch
        space of this thread, and its next call overwrites it.
        """
        out = _scratch("integers", np.int64, count)
        words = count + count // 32 + 64
        while table.fill(self._words(event, block, words), out) is None:
            words *= 2
        return out

    def _fingerprint(self, event: int, *parts: bytes | memoryview) -> str:
        """Keyed fingerprint of bytes, to check that an event's noise is reused for the same sums.

        It is stored beside the key and erased with it. Without the key it reveals nothing.
        """
        once = hashlib.blake2b(
            event.to_bytes(8, "big"), key=self._secret(), person=b"taciturn-print", digest_size=32
        )
        code = Poly1305(once.digest())
        for part in parts:
            view = memoryview(part).cast("B")
            code.update(len(view).to_bytes(8, "big"))
            code.update(view)
        return code.finalize().hex()

    def _derived(self, purpose: bytes) -> bytes:
        """Key for another purpose, independent of the noise and of the keys for other purposes."""
        return hashlib.blake2b(
            purpose, key=self._secret(), person=b"taciturn-derive", digest_size=32
        ).digest()

    def erase(self, reason: str = _ERASED) -> None:
        """Erase the key; the source cannot be used afterwards."""
        self._key[:] = bytes(len(self._key))
        self._lost = self._lost or reason

    def _secret(self) -> bytes:
        """Secret key, for this module and the run folder only."""
        if self._process != os.getpid():
            self.erase(_FORKED)
        if self._lost is not None:
            raise NoiseReuse(self._lost)
        return bytes(self._key)

    def _words(self, event: int, block: int, count: int) -> npt.NDArray[np.uint64]:
        """First `count` words of the stream at an address."""
        if not (0 <= event < EVENTS_MAX and 0 <= block < BLOCKS_MAX and count < _STREAM_WORDS_MAX):
            raise InvalidParameter("the noise address is out of range")
        # The counter takes the low 48 bits; a stream is far shorter than 2^48 cipher blocks.
        start = event.to_bytes(6, "big") + block.to_bytes(4, "big") + bytes(6)
        stream = Cipher(algorithms.AES(self._secret()), modes.CTR(start)).encryptor()
        words = _scratch("words", np.uint64, count)
        view = words.data.cast("B")
        for begin in range(0, len(view), len(_ZEROS)):
            part = view[begin : begin + len(_ZEROS)]
            stream.update_into(_ZEROS[: len(part)], part)
        return words if sys.byteorder == "little" else words.byteswap()


class SecureNoise(NoiseSource):
    """Noise under a fresh key from the operating system."""

    __slots__ = ()
    _kind = Noise.SECURE

    def __init__(self) -> None:
        self._begin(os.urandom(32))


class InsecureTestNoise(NoiseSource):
    """Reproducible noise from a seed, for tests only: it protects nothing.

    Certificates of runs with it have status `void`.
    """

    __slots__ = ()
    _kind = Noise.TEST

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidParameter(f"seed must be a whole number, got {validate.shown(seed)}")
        name = f"taciturn insecure test noise {seed}".encode()
        self._begin(hashlib.sha256(name).digest())


SOURCES: tuple[type[NoiseSource], ...] = (SecureNoise, InsecureTestNoise)
"""Source classes that a gate accepts. A subclass is refused, since it could draw anything."""


def check_source(noise: NoiseSource) -> None:
    """Raise unless the class of a source is one of `SOURCES`."""
    if type(noise) not in SOURCES:
        raise InvalidParameter("noise must be SecureNoise() or, in tests, InsecureTestNoise(seed)")


def _restored(key: bytes, kind: Noise) -> NoiseSource:
    """Noise source with a key from a run folder."""
    source = object.__new__(next(each for each in SOURCES if each._kind is kind))
    source._begin(key)
    return source


def _erase_all() -> None:
    for source in list(_living):
        source.erase(_FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_erase_all)
