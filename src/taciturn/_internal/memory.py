"""Memory limits of this process, checked before work that would exceed them.

Libraries written in other languages abort the process if an allocation fails, which no exception
handler can prevent. Imports only the standard library, since the start of a command needs it.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import OutOfMemory

_MIB = 2**20

_RESERVE = 64 * _MIB
"""Memory left for everything that an estimate does not cover."""

_CGROUP_UNLIMITED = 2**60
"""Limits of a control group from here on stand for none."""


@dataclass(frozen=True)
class Limit:
    """A limit on memory: its name, its size and how much is used, in bytes."""

    name: str
    size: int
    used: int

    @property
    def room(self) -> int:
        """Bytes that are left."""
        return self.size - self.used


def limits() -> list[Limit]:
    """All known memory limits of this process."""
    virtual, data, resident = _usage()
    found = [
        Limit(name, size, {"address space": virtual, "data segment": data}[what])
        for name, what, size in _resource_limits()
    ]
    found += [Limit("control group", size, resident) for size in _cgroup_sizes()]
    if total := _machine_memory():
        found.append(Limit("memory of this machine", total, resident))
    return found


def require(size: int, work: str) -> None:
    """Raise if `work` needs `size` more bytes than now and a limit leaves less.

    The numbers depend on the ratings, so the message is owner-only.
    """
    for limit in limits():
        if size + _RESERVE > limit.room:
            raise OutOfMemory(
                f"{work} needs about {gigabytes(limit.used + size + _RESERVE)} of memory, and the "
                f"limit ({limit.name}) is {gigabytes(limit.size)}; raise the limit, or use a "
                "machine with more memory (owner-only: these numbers depend on the ratings)"
            )


def start_problem(address_space: int, data: int) -> str | None:
    """Message if a limit is too small to start, given the bytes that starting needs."""
    needs = {"address space": address_space, "data segment": data}
    for name, what, size in _resource_limits():
        if size < needs[what]:
            return (
                f"Taciturn needs about {gigabytes(needs[what])} of {what} to start, and the limit "
                f"({name}) is {gigabytes(size)}; raise the limit"
            )
    return None


def is_limited() -> bool:
    """True if `ulimit` limits the memory of this process."""
    return any(_resource_limits())


def advice() -> str:
    """End of a message: the smallest limit, and what to do."""
    known = limits()
    least = min(known, key=lambda limit: limit.room, default=None)
    stated = "" if least is None else f", and the limit ({least.name}) is {gigabytes(least.size)}"
    return f"{stated}; raise the limit, or use a machine with more memory"


def gigabytes(size: int) -> str:
    """Size in words, rounded to two digits."""
    unit, name = (10**9, "GB") if size >= 10**9 else (10**6, "MB")
    return f"{float(f'{size / unit:.2g}'):g} {name}"


def _resource_limits() -> Iterator[tuple[str, str, int]]:
    """Name, kind and size of the limits that `ulimit` sets."""
    if sys.platform == "win32":
        return
    import resource

    for name, what, kind in (
        ("ulimit -v", "address space", resource.RLIMIT_AS),
        ("ulimit -d", "data segment", resource.RLIMIT_DATA),
    ):
        size = resource.getrlimit(kind)[0]
        if size != resource.RLIM_INFINITY:
            yield name, what, size


def _usage() -> tuple[int, int, int]:
    """Bytes of address space, data segment and resident memory; zeros if not known."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0, 0
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    virtual, data, resident = (
        int(facts.get(name, "0 kB").split()[0]) * 1024 for name in ("VmSize", "VmData", "VmRSS")
    )
    return virtual, data, resident


def _cgroup_sizes() -> Iterator[int]:
    """Limits of the control groups of this process and of their parents, versions 1 and 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    root = Path("/sys/fs/cgroup")
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, file = (root, "memory.max")
        if controllers:
            base, file = root / "memory", "memory.limit_in_bytes"
        own = base / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(base) and (size := _size_in(folder / file)) is not None:
                yield size


def _size_in(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    size = int(text) if text.isdigit() else _CGROUP_UNLIMITED
    return size if size < _CGROUP_UNLIMITED else None


def _machine_memory() -> int | None:
    """Memory and swap space of this machine."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return facts["MemTotal"] + facts.get("SwapTotal", 0)
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
