"""Sources of noise: a keyed cipher, addressed by event and block.

Noise is a function of the secret key and an address, nothing else: no state to share between
threads, no order to keep, and a computation that is repeated draws the same noise again. The same
noise on two different sums would reveal their difference, so a source belongs to one run on one
data set and to the process that made it.
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
from taciturn.accounting.events import Noise
from taciturn.errors import InvalidParameter, NoiseReuse

Word = TypeVar("Word", np.int64, np.uint64)

FORMAT = 2
"""Number of the way from key and address to noise; a run goes on only under the same."""

BLOCK = 2**16
"""Numbers drawn from one address, at most. Part of the format."""

EVENTS_MAX, BLOCKS_MAX = 2**48, 2**32
_STREAM_WORDS_MAX = 2**40

_ZEROS = memoryview(bytes(2**20))

_local = threading.local()


def _scratch(name: str, kind: type[Word], count: int) -> npt.NDArray[Word]:
    """Return an array of this thread that is used again by every call: fresh memory is slow."""
    array: npt.NDArray[Word] | None = getattr(_local, name, None)
    if array is None or array.size < count:
        array = np.empty(count, dtype=kind)
        setattr(_local, name, array)
    return array[:count]


_ERASED = "the noise key was erased when its run completed; begin a new run"
_FORKED = "a noise source cannot be used in a forked process: both would draw the same noise"

_living: "weakref.WeakSet[NoiseSource]" = weakref.WeakSet()


class NoiseSource:
    """AES-256 in counter mode under a secret key, one stream for each (event, block).

    Its class says what its noise is worth: `SecureNoise` makes its own key, `InsecureTestNoise`
    takes a seed. Nobody gives a key and a kind; only a run folder restores a source it kept.
    """

    # No attribute can be added: a method of an instance cannot be replaced.
    __slots__ = ("__weakref__", "_claimed", "_key", "_lost", "_process")

    _kind: ClassVar[Noise]

    def __init__(self) -> None:
        raise InvalidParameter("make SecureNoise(), or InsecureTestNoise(seed) for tests")

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
        """Whether the noise is secure."""
        return self._kind

    def claim(self) -> None:
        """Take the source for one run; addresses count from 0 in each, so a second is refused."""
        if self._claimed:
            raise NoiseReuse("this noise belongs to another run already; make a new source")
        self._claimed = True

    def __reduce__(self) -> NoReturn:
        raise NoiseReuse("a noise source cannot be copied: both copies would draw the same noise")

    def _integers(
        self, table: _core.Ziggurat, *, event: int, block: int, count: int
    ) -> npt.NDArray[np.int64]:
        """Return the `count` integers at an address, of the scale of `table`; for the gate only.

        Whoever draws noise outside of it can subtract it from what a gate releases. The array is
        scratch space of this thread: its next call overwrites it.
        """
        out = _scratch("integers", np.int64, count)
        words = count + count // 32 + 64
        while table.fill(self._words(event, block, words), out) is None:
            words *= 2
        return out

    def _fingerprint(self, event: int, *parts: bytes | memoryview) -> str:
        """Return a keyed fingerprint of bytes, for comparing what an event's noise was used for.

        It is kept beside the key and erased with it; without the key it says nothing.
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

    def erase(self, reason: str = _ERASED) -> None:
        """Forget the key; the source cannot be used any more."""
        self._key[:] = bytes(len(self._key))
        self._lost = self._lost or reason

    def _secret(self) -> bytes:
        """Return the key, for this module and the run folder only."""
        if self._process != os.getpid():
            self.erase(_FORKED)
        if self._lost is not None:
            raise NoiseReuse(self._lost)
        return bytes(self._key)

    def _words(self, event: int, block: int, count: int) -> npt.NDArray[np.uint64]:
        """Return the first `count` words of the stream at an address."""
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
    """Repeatable noise from a seed, for tests only: it hides nothing, its certificates are void."""

    __slots__ = ()
    _kind = Noise.TEST

    def __init__(self, seed: int) -> None:
        self._begin(hashlib.sha256(b"taciturn insecure test noise %d" % seed).digest())


SOURCES: tuple[type[NoiseSource], ...] = (SecureNoise, InsecureTestNoise)
"""All sources that a gate takes. A class derived from one could draw anything under its name."""


def check_source(noise: NoiseSource) -> None:
    """Raise unless the source is one of `SOURCES` itself."""
    if type(noise) not in SOURCES:
        raise InvalidParameter("noise must be SecureNoise() or, in tests, InsecureTestNoise(seed)")


def _restored(key: bytes, kind: Noise) -> NoiseSource:
    """Source with a key that a run folder kept."""
    source = object.__new__(next(each for each in SOURCES if each._kind is kind))
    source._begin(key)
    return source


def _forget() -> None:
    for source in list(_living):
        source.erase(_FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
