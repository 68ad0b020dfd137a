"""Alternating least squares without privacy, against other libraries: time, memory, accuracy.

Every library trains on the same 90% of the ratings, with the same number of factors and threads,
and predicts the same 10%, without users and items that have no training ratings. Each has its own
environment in build/peers, created on first use, and its own script in benchmarks/peer; Taciturn is
run in the same way. If a library does not install or run, its row says so.

A pass of least squares (taciturn, lenskit, spark, implicit) solves both axes once. A pass of
gradient descent (cornac, surprise) visits every rating once, which is less work and less progress,
so the time to a common RMSE is given as well. implicit predicts preferences, not ratings, and has
no RMSE; surprise uses one thread only. Time is that of training, starting with the data in the
library's own form, in the best of interleaved rounds. `base_mb` is the memory before training,
including data and imports.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.report import Bar, Row
from benchmarks.training import ratings_at_hand
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split

RANKS = (20, 64)
THREADS = 2
ROUNDS = 2
TARGETS = {"ml-1m": 0.865, "synthetic:1m": 0.835}
"""Held-out RMSE that every library that predicts ratings attains with 20 factors."""

INSTALL_SECONDS, RUN_SECONDS = 900, 300
ENVIRONMENTS = Path(__file__).parents[1] / "build" / "peers"
SCRIPTS = Path(__file__).parent / "peer"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Library, and how to run it.

    Parameters
    ----------
    script
        Its script in benchmarks/peer.
    steps
        Arguments of pip, step by step; if empty, the script runs in this environment.
    passes
        Number of passes: enough to attain the target RMSE and to time a pass.
    regularization
        In the library's own unit. Of a few values tried on the same ratings, the fastest to attain
        the target; for implicit, its default.
    threads
        Number of threads that it can use, at most `THREADS`.
    arguments
        Further arguments of the script.
    needs
        Program that must be installed.
    """

    script: str
    steps: tuple[tuple[str, ...], ...] = ()
    passes: int
    regularization: float
    threads: int = THREADS
    arguments: tuple[str, ...] = ()
    needs: str | None = None


_IMPLICIT = (("implicit==0.7.3",),)

PEERS = {
    "taciturn": Peer(script="taciturn_als", passes=15, regularization=0.03),
    "lenskit": Peer(
        script="lenskit_als",
        # torch first: lenskit would otherwise install the newest version, with gigabytes of GPU
        # libraries.
        steps=(("torch==2.13.0",), ("lenskit==2025.8.1",)),
        passes=15,
        regularization=0.075,
    ),
    "spark": Peer(
        script="spark_als",
        steps=(("numpy==2.4.6", "pyspark==4.3.0"),),
        passes=8,
        regularization=0.06,
        needs="java",
    ),
    "implicit": Peer(
        script="implicit_als",
        steps=_IMPLICIT,
        passes=8,
        regularization=0.01,
        arguments=("exact",),
    ),
    "implicit (cg)": Peer(
        script="implicit_als",
        steps=_IMPLICIT,
        passes=8,
        regularization=0.01,
        arguments=("cg",),
    ),
    "cornac": Peer(script="cornac_mf", steps=(("cornac==3.0.1",),), passes=24, regularization=0.02),
    "surprise": Peer(
        script="surprise_svd",
        steps=(("numpy==1.26.4", "scikit-surprise==1.1.5"),),
        passes=24,
        regularization=0.05,
        threads=1,
    ),
}


class Failed(Exception):
    """A command failed; the message gives the reason."""


def run() -> list[Row]:
    """Time, memory and accuracy for each library and number of factors."""
    ratings, source = ratings_at_hand()
    pythons: dict[str, str] = {}
    missing: list[Row] = []
    for name, peer in PEERS.items():
        try:
            pythons[name] = _python(peer)
        except Failed as reason:
            missing.append({"library": name, "status": f"did not install: {reason}"})
    found: dict[tuple[str, int], list[dict[str, Any]]] = {
        (name, rank): [] for rank in RANKS for name in pythons
    }
    with TemporaryDirectory() as folder:
        _write(ratings, Path(folder))
        for _ in range(ROUNDS):
            for (name, rank), rounds in found.items():
                if all(each["status"] == "ok" for each in rounds):
                    print(f"peers: {name}, {rank} factors", file=sys.stderr, flush=True)
                    rounds.append(_measure(PEERS[name], pythons[name], folder, rank))
    rows = [_row(name, rank, rounds, TARGETS[source]) for (name, rank), rounds in found.items()]
    _compare(rows)
    return [{"ratings": source} | row for row in (*rows, *missing)]


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima: a pass is faster than that of two other exact least-squares solvers."""
    return [
        Bar.at_most(
            f"a pass with {row['rank']} factors, times {row['library']}'s",
            round(1 / float(str(row["times_taciturn_pass"])), 3),
            1,
        )
        for row in rows
        if row["library"] in ("lenskit", "implicit") and row.get("times_taciturn_pass")
    ]


def lenskit_passes(
    ratings: Ratings, folder: Path, ranks: Iterable[int]
) -> Iterator[tuple[int, float]]:
    """Seconds of lenskit's pass for each rank; raises if it does not install or run."""
    peer = PEERS["lenskit"]
    python = _python(peer)
    _write(ratings, folder)
    for rank in ranks:
        found = _measure(peer, python, str(folder), rank)
        if found["status"] != "ok":
            raise Failed(found["status"])
        yield rank, _seconds_per_pass([found])


def _python(peer: Peer) -> str:
    """Python of a library's environment, which is created on first use."""
    if peer.needs and not shutil.which(peer.needs):
        raise Failed(f"there is no {peer.needs}")
    if not peer.steps:
        return sys.executable
    folder = ENVIRONMENTS / peer.script
    python, mark, wanted = str(folder / "bin" / "python"), folder / "steps", repr(peer.steps)
    if mark.exists() and mark.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _output([sys.executable, "-m", "venv", str(folder)], INSTALL_SECONDS)
    for step in peer.steps:
        print(f"peers: installing {' '.join(step)}", file=sys.stderr, flush=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        _output([*pip, *step], INSTALL_SECONDS)
    mark.write_text(wanted)
    return python


def _write(ratings: Ratings, folder: Path) -> None:
    """Write train.npz and test.npz; the test set has no users or items without training ratings."""
    train, test = random_split(ratings, 0.1, seed=1)
    _save(folder / "train.npz", train, np.ones(len(train), dtype=np.bool_))
    users, items = (np.diff(side.starts) > 0 for side in (train.by_user, train.by_item))
    _save(folder / "test.npz", test, users[test.rows()] & items[test.by_user.columns])


def _save(file: Path, ratings: Ratings, keep: npt.NDArray[np.bool_]) -> None:
    np.savez(
        file,
        user=ratings.rows()[keep],
        item=ratings.by_user.columns[keep],
        rating=ratings.values()[keep],
        shape=ratings.shape,
        scale=str(ratings.scale),
    )


def _measure(peer: Peer, python: str, folder: str, rank: int) -> dict[str, Any]:
    """Output of a library's script, or its error."""
    script = str(SCRIPTS / f"{peer.script}.py")
    numbers = rank, peer.threads, peer.passes, peer.regularization
    try:
        output = _output([python, script, folder, *map(str, numbers), *peer.arguments], RUN_SECONDS)
    except Failed as reason:
        return {"status": f"did not run: {reason}"}
    try:
        measured: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"status": "did not run: its last line is no result"}
    return measured | {"status": "ok"}


def _output(command: list[str], limit: float) -> str:
    """Output of a command; raises if it fails or takes too long."""
    # Libraries use threads themselves, so BLAS must not.
    settings = {"OMP_NUM_THREADS": THREADS, "OPENBLAS_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {name: str(value) for name, value in settings.items()},
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except BaseException as interruption:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(interruption, subprocess.TimeoutExpired):
                raise Failed(f"took more than {limit:g} seconds") from interruption
            raise
    if process.returncode:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"ended with {process.returncode}")
    return output


def _row(name: str, rank: int, rounds: list[dict[str, Any]], target: float) -> dict[str, Any]:
    """Best of the rounds, or the reason why there is none."""
    row = {"library": name, "rank": rank, "status": rounds[-1]["status"]}
    if row["status"] != "ok":
        return row
    looks = [
        look
        for each in rounds
        for look in zip(each["seconds"], each["passes"], each["rmse"], strict=True)
    ]
    reached = [look for look in looks if look[2] is not None and look[2] <= target]
    seconds, passes, _ = min(reached, default=(None, None, None))
    best = min((rmse for _, _, rmse in looks if rmse is not None), default=None)
    return row | {
        "version": rounds[0]["version"],
        "threads": PEERS[name].threads,
        "seconds_per_pass": _rounded(_seconds_per_pass(rounds), 4),
        "passes_to_target": passes,
        "seconds_to_target": _rounded(seconds, 3),
        "best_rmse": _rounded(best, 4),
        "base_mb": _rounded(rounds[0]["base_mb"]),
        "peak_mb": _rounded(rounds[0]["peak_mb"]),
    }


def _rounded(number: float | None, digits: int | None = None) -> float | None:
    return None if number is None else round(number, digits)


def _seconds_per_pass(rounds: list[dict[str, Any]]) -> float:
    """Median in the best round; for retrained libraries, the time that additional passes took."""
    passes = rounds[0]["passes"]
    if passes == list(range(1, len(passes) + 1)):
        return float(min(np.median(np.diff(each["seconds"])) for each in rounds))
    best = np.min([each["seconds"] for each in rounds], axis=0)
    return float((best[-1] - best[0]) / (passes[-1] - passes[0]))


def _compare(rows: list[dict[str, Any]]) -> None:
    """Add the ratio of each library's time to that of Taciturn."""
    taciturn = {row["rank"]: row for row in rows if row["library"] == "taciturn"}
    for row in rows:
        for ratio, name in (
            ("times_taciturn_pass", "seconds_per_pass"),
            ("times_taciturn_target", "seconds_to_target"),
        ):
            ours, theirs = taciturn[row["rank"]].get(name), row.get(name)
            row[ratio] = round(theirs / ours, 2) if ours and theirs else None
