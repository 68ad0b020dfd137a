"""Worker processes that try mutated inputs, and are replaced when an input ends them.

A worker reports the outcome of each input, so that its end is attributed to the next one. Its
memory is limited, and it is killed if an input takes too much processor time or hangs. Workers are
spawned: the library refuses to work in a process that was forked after its parent had used polars.
"""

import multiprocessing
import os
import resource
import signal
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, process_time

from tests.torture.target import Target, attempt

SECONDS_MAX = 10
"""Maximum processor time for one input. Unlike elapsed time, other work does not lengthen it."""

SILENCE_MAX = 300.0
"""Maximum time without a report of a worker, after which it hangs."""

MEMORY_MAX = 2**30
"""Maximum memory that an input may take beyond what a worker holds when it starts, in bytes."""

GUARD = "the Parquet reader aborted while reading"
GUARDED = "refused: the reader's abort, reported by its guard"
"""Outcome of an input that ends the process with a message for the user and exit code 2."""

GUARD_CODE = 2

MEMORY = Path("/dev/shm")  # noqa: S108 workers make a folder of their own in it
"""Folder in memory, where no worker waits for a disk; not every system has one."""

ROOT = Path(__file__).parents[2]

_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Chunk:
    """Inputs of one target: those with indices from `start` until `stop`."""

    target: type[Target]
    start: int
    stop: int


@dataclass(frozen=True)
class Result:
    """Outcome of one input and its processor time; `finding` explains what must not happen."""

    name: str
    index: int
    outcome: str
    seconds: float
    finding: str | None = None


@dataclass(eq=False)
class _Worker:
    """A process, its end of a pipe, its errors, and the inputs that it has yet to try."""

    process: BaseProcess
    pipe: Connection
    errors: Path
    chunk: Chunk | None = None
    since: float = field(default_factory=monotonic)


def try_inputs(
    chunks: Iterator[Chunk],
    seed: int,
    jobs: int,
    report: Callable[[Result], None],
    *,
    seconds: int = SECONDS_MAX,
    silence: float = SILENCE_MAX,
) -> int:
    """Try the inputs of all chunks; returns the number of workers that were replaced.

    Parameters
    ----------
    chunks
        Inputs.
    seed
        Seed of the mutations.
    jobs
        Number of workers.
    report
        Function to call with each result.
    seconds
        Maximum processor time of an input.
    silence
        Maximum time without a report of a worker.
    """
    replaced = 0
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when a worker imports polars
    os.environ["RUST_BACKTRACE"] = "0"
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="torture-", dir=memory) as folder:
        workers = [_start(Path(folder), number, seed, seconds) for number in range(jobs)]
        try:
            for worker in workers:
                _assign(worker, next(chunks, None))
            while any(worker.chunk for worker in workers):
                for worker in _ready(workers, silence):
                    if _receive(worker, report):
                        if worker.chunk is None:
                            _assign(worker, next(chunks, None))
                        continue
                    left = _buried(worker, report)
                    replaced += 1
                    place = workers.index(worker)
                    workers[place] = _start(Path(folder), jobs + replaced, seed, seconds)
                    _assign(workers[place], left or next(chunks, None))
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.join()
    return replaced


def _start(folder: Path, number: int, seed: int, seconds: int) -> _Worker:
    here, there = _CONTEXT.Pipe()
    errors = folder / f"errors-{number}"
    own = folder / str(number)
    own.mkdir()
    facts = (there, own, errors, seed, seconds)
    process = _CONTEXT.Process(target=_work, args=facts, daemon=True)
    process.start()
    there.close()
    return _Worker(process, here, errors)


def _assign(worker: _Worker, chunk: Chunk | None) -> None:
    worker.chunk, worker.since = chunk, monotonic()
    if chunk is not None:
        worker.pipe.send(chunk)


def _ready(workers: list[_Worker], silence: float) -> list[_Worker]:
    """Workers that reported or ended; one that hangs is killed."""
    busy = {worker.pipe: worker for worker in workers if worker.chunk}
    found = [busy[pipe] for pipe in wait(list(busy), timeout=1.0) if isinstance(pipe, Connection)]
    for worker in busy.values():
        if worker not in found and monotonic() - worker.since > silence:
            worker.process.kill()
            worker.process.join()
            worker.errors.write_text(f"reported nothing for {silence:g} seconds")
    return found


def _receive(worker: _Worker, report: Callable[[Result], None]) -> bool:
    """Report the next outcome of a worker; False if it has ended."""
    try:
        result: Result = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return False
    worker.since = monotonic()
    report(result)
    if worker.chunk is not None:
        worker.chunk = _after(worker.chunk, result.index)
    return True


def _buried(worker: _Worker, report: Callable[[Result], None]) -> Chunk | None:
    """Report the input that ended a worker; returns the inputs after it."""
    chunk = worker.chunk
    if chunk is None:
        return None
    said = worker.errors.read_text(errors="replace").strip()
    code = worker.process.exitcode
    if code == -signal.SIGXCPU:
        said = "more than the allowed processor time"
    if code == GUARD_CODE and GUARD in said:
        report(Result(chunk.target.name, chunk.start, GUARDED, 0.0))
    else:
        text = f"the process ended with exit code {code}: {said[-2000:]}"
        report(Result(chunk.target.name, chunk.start, "ended the process", 0.0, text))
    return _after(chunk, chunk.start)


def _after(chunk: Chunk, index: int) -> Chunk | None:
    """Inputs of a chunk after one of them."""
    return Chunk(chunk.target, index + 1, chunk.stop) if index + 1 < chunk.stop else None


def _work(pipe: Connection, folder: Path, errors: Path, seed: int, seconds: int) -> None:
    """Try inputs until the parent ends this process."""
    handle = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 2)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the parent, which ends this process
    targets: dict[str, Target] = {}
    while True:
        try:
            chunk: Chunk = pipe.recv()
        except EOFError:
            return
        name = chunk.target.name
        if name not in targets:
            own = folder / name
            own.mkdir()
            limit_memory(None)  # libraries that are loaded now may reserve a lot
            limit_time(None)
            targets[name] = chunk.target(own)
            limit_memory(MEMORY_MAX)
        for index in range(chunk.start, chunk.stop):
            limit_time(seconds)
            pipe.send(tried(targets[name], seed, index))


def limit_memory(more: int | None) -> None:
    """Let this process allocate at most `more` more bytes; None removes the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (most if more is None else held + more, most))


def limit_time(more: int | None) -> None:
    """Let SIGXCPU end this process after `more` seconds of CPU time; None removes the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    end = most if more is None else ceil(process_time()) + more
    resource.setrlimit(resource.RLIMIT_CPU, (end, most))


def tried(target: Target, seed: int, index: int) -> Result:
    """Result of one input in this process."""
    start = process_time()
    try:
        outcome, finding = attempt(target, seed, index), None
    except (Exception, AssertionError) as error:
        outcome, finding = f"finding: {type(error).__name__}", _trace()
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic in polars is not an Exception
            raise
        outcome, finding = "finding: panic", _trace()
    return Result(target.name, index, outcome, process_time() - start, finding)


def _trace() -> str:
    """End of the traceback, with paths relative to the repository and to Python's libraries."""
    text = traceback.format_exc(limit=-6)
    for folder in (sysconfig.get_path("purelib"), ROOT, sysconfig.get_path("stdlib")):
        text = text.replace(f"{folder}{os.sep}", "")
    return text
