"""Builds of the kernels' test program: native, for ARM, and with emulated instructions."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

HOME = Path(__file__).parent
ROOT = HOME.parents[1]
CORE = ROOT / "cpp"
CACHE = ROOT / "build" / "native"

KERNELS = (
    "cpu",
    "error_sums",
    "error_sums_avx2",
    "error_sums_avx512",
    "error_sums_portable",
    "float_pass",
    "grid_sums",
    "pack",
    "posterior",
    "ridge",
    "rows",
    "top_k",
    "ziggurat",
)
_CONTRACTED = {"float_pass", "posterior", "ridge", "top_k"}  # as in CMakeLists.txt
_SIMDE = Path("/usr/include/simde/x86/avx512.h")


@dataclass(frozen=True, kw_only=True)
class Target:
    """Compiler, its flags, and what runs the program."""

    name: str
    compiler: str = os.environ.get("CXX", "c++")
    flags: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()

    def require(self) -> None:
        """Skip the test, or fail it in continuous integration, unless all tools are installed."""
        tools = (self.compiler, *self.runner[:1])
        missing = [tool for tool in tools if shutil.which(tool) is None]
        if self is EMULATED and not _SIMDE.exists():
            missing.append("libsimde-dev")
        if not missing:
            return
        message = f"needs {', '.join(missing)}: make native-tools"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


NATIVE = Target(name="native", flags=("-O1",))
EMULATED = Target(name="emulated", flags=("-O0", "-DTACITURN_EMULATED"))
ARM = Target(
    name="arm",
    compiler="aarch64-linux-gnu-g++",
    flags=("-O1", "-static"),
    runner=("qemu-aarch64",),
)


def build(target: Target, changes: Mapping[str, str] | None = None) -> Path:
    """Program for a target, with some source files of the kernels replaced by other texts.

    Objects are kept under build/, so that only what changed is compiled again.
    """
    files = {path.name: path.read_text() for home in (CORE, HOME) for path in _sources(home)}
    files |= changes or {}
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = CACHE / _digest(target, *files.values())
        program = folder / "program"
        if not program.exists():
            folder.mkdir(exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text)
            programs = [path.name for path in sorted(HOME.glob("*.cpp"))]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                names = [*(f"{name}.cpp" for name in KERNELS), *programs]
                objects = list(pool.map(lambda name: _compiled(target, folder, name, files), names))
            _run(target.compiler, *target.flags, "-o", program, *objects)
    return program


def _sources(home: Path) -> list[Path]:
    return sorted(path for path in home.iterdir() if path.suffix in (".cpp", ".hpp", ".inc"))


def _compiled(target: Target, folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """Object file of a source, compiled unless it and all that it includes were compiled before."""
    texts = [files[each] for each in sorted(_included(name, files))]
    found = CACHE / f"{_digest(target, name, *texts)}.o"
    if not found.exists():
        contracted = "fast" if name.removesuffix(".cpp") in _CONTRACTED else "off"
        flags = ("-std=c++20", *target.flags, f"-ffp-contract={contracted}", "-w")
        _run(target.compiler, *flags, f"-I{folder}", "-c", folder / name, "-o", found)
    return found


def _included(name: str, files: Mapping[str, str]) -> set[str]:
    """A source file and all of ours that it includes."""
    found, left = set(), {name}
    while left:
        found |= left
        names = {each for one in left for each in re.findall(r'#include "(.+)"', files[one])}
        left = (names & set(files)) - found
    return found


def _digest(target: Target, *texts: str) -> str:
    hashed = hashlib.sha256(repr(target).encode())
    for text in texts:
        hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()[:20]


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


def run(target: Target, program: Path) -> subprocess.CompletedProcess[str]:
    """Outcome of the test program."""
    return subprocess.run(
        [*target.runner, program], capture_output=True, text=True, check=False, timeout=300
    )
