"""Training as a data owner does it: ratings in, a release with its certificate out.

While it runs, a training keeps a folder beside the release it will write, `RELEASE.run`, with its
ledger, its noise key and checkpoints. An interrupted one goes on from there with the same noise.
"""

import json
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import polars as pl

from taciturn._internal import validate
from taciturn._internal.files import check_absent, drafts, move_private
from taciturn._version import __version__
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.journal import read_journal
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import BudgetExceeded, InvalidDocument, InvalidParameter, OutputError
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.run_folder import SECRET, RunFolder, erase
from taciturn.release.read import load_release
from taciturn.release.sign import read_private_key
from taciturn.release.write import (
    NO_USERS,
    UsersOut,
    write_private_items,
    write_release,
)
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.catalog import check_configuration
from taciturn.solvers.contract import Fit, Session, Solver, settings, silent, unit_of

_ITEMS, _PSEUDONYMS, _DRAFT = "items.parquet", "pseudonyms.parquet", "release"
"""What waits in a run folder until the release is in place."""

DELTA = 1e-5
"""δ at which the certificate of a run without a budget is stated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """What a training left: the release, and what the owner may look at.

    `rmse_train` and `rmse_test` are exact errors on private data: the owner's own view. `fit` is
    None if a resumed training had ended already.
    """

    fit: Fit | None
    certificate: Certificate
    release: Path
    seconds: float
    rmse_train: float | None = None
    rmse_test: float | None = None


def train(
    ratings: Ratings,
    solver: Solver | None = None,
    budget: Budget | None = None,
    *,
    output: str | Path,
    holdout: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
    resume: bool = False,
    private_items: str | Path | None = None,
    users_out: UsersOut | str | None = None,
    pseudonyms: str | Path | None = None,
    sign: str | Path | None = None,
    pattern_is_public: bool = False,
    progress: Callable[[int, int], None] = silent,
) -> Trained:
    """Train and write a release. Reads private data; only the release may be published.

    Parameters
    ----------
    ratings, solver, budget
        What to train on, how (`AlsSolver()` when None), and within what.
    output
        The folder of the release; it must not exist yet.
    holdout
        A part of the ratings to leave out of training and measure the error on, for the owner.
    seed
        Public; draws the split and the initial profiles, never noise.
    threads
        How many threads to use; the result does not depend on it.
    noise
        For tests; a fresh secure source when omitted.
    resume
        Go on with an interrupted training of the same data and configuration.
    private_items
        A file for item profiles that were never noised, where a solver has such.
    users_out
        Whether users appear in the release under their ids, under random pseudonyms, or not at all.
        Under unit `user` they never do; otherwise it is under their ids when omitted.
    pseudonyms
        The private file for the map from ids to pseudonyms.
    sign
        A private key, from `taciturn keygen`, to sign the release with.
    pattern_is_public
        Train under unit `value` although which pairs are rated depends on values, because that is
        public.
    progress
        Called with the iterations done and in all.
    """
    start = perf_counter()
    solver = solver or AlsSolver()
    _check_pattern(ratings, solver, pattern_is_public)
    check_configuration(solver.name, settings(solver))
    Session(seed=seed)  # raises before anything is made
    output = Path(output).absolute()
    users_out = users_in_release(solver, users_out)
    private = _private_files(solver, output, users_out, private_items, pseudonyms)
    key = read_private_key(sign) if sign is not None else None
    test = None
    if holdout is not None:
        holdout = validate.probability("holdout", holdout, "0.1 holds a tenth out")
        ratings, test = random_split(ratings, holdout, seed)
    has_names = users_out is UsersOut.PSEUDONYMS
    binding = _binding(ratings, solver, budget, seed, holdout, has_names)
    if resume and (certificate := _finished(output, private, binding)) is not None:
        return Trained(fit=None, certificate=certificate, release=output, seconds=0.0)
    for path in (output, *private.values()):
        check_absent(path)
    folder = _folder(output, binding, resume, noise)
    session = Session(
        seed=seed,
        user_seed=folder.secret_seed() if has_names else None,
        threads=threads,
        folder=folder,
        progress=progress,
    )
    try:
        fit = solver.fit(ratings, budget, session)
        certificate = Certificate.from_ledger(fit.ledger, _delta(solver, budget))
        _check_within(certificate, budget)
        # What is private waits in the run folder until the release is in place.
        waiting = {name: folder.path / name for name in private}
        for path in waiting.values():
            path.unlink(missing_ok=True)
        if _ITEMS in waiting:
            write_private_items(fit, waiting[_ITEMS])
        release = write_release(
            fit,
            certificate,
            output,
            users_out=users_out,
            pseudonyms=waiting.get(_PSEUDONYMS),
            key=key,
            draft=folder.path / _DRAFT,
        )
        for name, path in private.items():
            move_private(waiting[name], path)
    except BaseException:
        _leave(folder)
        raise
    try:
        folder.erase_key()
    finally:
        folder.close()
    shutil.rmtree(folder.path)
    return Trained(
        fit=fit,
        certificate=certificate,
        release=release,
        seconds=perf_counter() - start,
        rmse_train=rmse(fit, ratings) if test is not None else None,
        rmse_test=rmse(fit, test) if test is not None else None,
    )


def save(fit: Fit, path: str | Path, *, delta: float = DELTA) -> Path:
    """Write what may be released of a fit to a new folder, with its certificate at `delta`."""
    certificate = Certificate.from_ledger(fit.ledger, delta)
    users_out = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    return write_release(fit, certificate, check_absent(path), users_out=users_out)


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a training would spend and take. `certificate` is None if it is not private."""

    status: Status
    releases: int
    certificate: Certificate | None
    seconds: float
    memory: int


def preview(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None = None,
    *,
    holdout: float | None = None,
    threads: int | None = None,
    pattern_is_public: bool = False,
) -> Preview:
    """Return what training would spend, and about how long and how much memory it would take.

    Runs a few iterations on the ratings to see how fast they go, with throw-away noise, and throws
    the result away: nothing is released but the time and the memory they took, which depend on how
    many ratings there are and are the owner's view.
    """
    _check_pattern(ratings, solver, pattern_is_public)
    if holdout is not None:
        holdout = validate.probability("holdout", holdout, "0.1 holds a tenth out")
        ratings, _ = random_split(ratings, holdout)
    events = solver.plan(ratings, budget)
    certificate = None
    if events:
        certificate = Certificate.from_ledger(Ledger(events), _delta(solver, budget))
    seconds = _estimate(ratings, solver, budget, threads)
    return Preview(
        status=certificate.status if certificate else Status.NONE,
        releases=sum(isinstance(event, GaussianRelease) for event in events),
        certificate=certificate,
        seconds=seconds,
        memory=_peak_memory(),
    )


_TRIAL = 4
"""Iterations that a preview tries, the first of which does not count."""


class _Enough(Exception):
    """Ends a trial of a few iterations."""


def _estimate(
    ratings: Ratings, solver: Solver, budget: Budget | None, threads: int | None
) -> float:
    """Return about how many seconds training takes, from its first iterations."""
    marks = [perf_counter()]
    total = 1

    def progress(done: int, in_all: int) -> None:
        nonlocal total
        marks.append(perf_counter())
        total = in_all
        if done >= _TRIAL:
            raise _Enough

    try:
        solver.fit(ratings, budget, Session(threads=threads, progress=progress))
    except _Enough:
        efforts = (solver.efforts if isinstance(solver, AlsSolver) else None) or [1.0] * total
        each = (marks[-1] - marks[2]) / sum(efforts[1:_TRIAL])
        return marks[1] - marks[0] + each * sum(efforts)
    return perf_counter() - marks[0]


def _peak_memory() -> int:
    """Return the most memory that this process has had resident, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count the memory of the process that started this one, too.
        (line,) = [each for each in status.read_text().splitlines() if each.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def run_folder(output: str | Path) -> Path:
    """Return where an interrupted training keeps what it needs to go on."""
    output = Path(output).absolute()
    return output.with_name(f"{output.name}.run")


def users_in_release(solver: Solver, users_out: UsersOut | str | None) -> UsersOut:
    """Return what users are called in the release; refuse what the unit forbids."""
    hides_people = unit_of(solver) is Unit.USER
    if users_out is None:
        return UsersOut.NONE if hides_people else UsersOut.IDS
    users_out = validate.choice("users_out", users_out, UsersOut)
    if hides_people and users_out is not UsersOut.NONE:
        raise InvalidParameter(NO_USERS)
    return users_out


def _check_pattern(ratings: Ratings, solver: Solver, pattern_is_public: bool) -> None:
    """Raise under unit `value` if the pattern, which it leaves public, depends on values."""
    is_exposed = solver.is_private and unit_of(solver) is Unit.VALUE and not pattern_is_public
    if is_exposed and ratings.preparation.is_pattern_from_values:
        raise InvalidParameter(
            "unit value publishes which pairs are rated, and here that depends on values: ratings "
            "outside the scale are dropped, or the ratings are a sparse matrix, which cannot hold "
            "a 0; use --outside clip or --unit rating, or --pattern-is-public if the pattern is "
            "public"
        )


def _check_within(certificate: Certificate, budget: Budget | None) -> None:
    """Raise if a certificate exceeds the budget: a bug here, which must not reach a release."""
    if budget is None:
        return
    if certificate.epsilon is not None and certificate.epsilon > budget.epsilon:
        raise BudgetExceeded(
            "the training recorded more than its budget, and no release was written; this is a bug "
            "of Taciturn: please report it"
        )


def _private_files(
    solver: Solver,
    output: Path,
    users_out: UsersOut,
    private_items: str | Path | None,
    pseudonyms: str | Path | None,
) -> dict[str, Path]:
    """Return where private files go, by their names in the run folder; refuse what cannot be."""
    if (users_out is UsersOut.PSEUDONYMS) != (pseudonyms is not None):
        raise InvalidParameter(
            "pseudonyms and a private file for their map go together: "
            "--users-out pseudonyms --pseudonyms-out FILE"
        )
    keeps_items = getattr(solver, "has_private_items", False)
    if private_items is not None and not keeps_items:
        raise InvalidParameter(
            f"{solver.name} has no private item profiles: they are in the release"
        )
    if users_out is UsersOut.NONE and keeps_items:
        raise InvalidParameter(f"{solver.name} releases users only; nothing is left without them")
    private = {
        name: Path(path).absolute()
        for name, path in ((_ITEMS, private_items), (_PSEUDONYMS, pseudonyms))
        if path is not None
    }
    outputs = (output, run_folder(output), *private.values())
    if len({path.resolve() for path in outputs}) != len(outputs):
        raise InvalidParameter("every output needs a path of its own")
    return private


def _folder(
    output: Path, data: list[bytes | memoryview], resume: bool, noise: NoiseSource | None
) -> RunFolder:
    path = run_folder(output)
    if resume:
        if not path.exists():
            raise InvalidDocument(f"there is no interrupted training in {path}; leave out --resume")
        return RunFolder.resume(path, data=data)
    if path.exists():
        raise OutputError(
            f"an interrupted training is in {path}; go on with --resume, or remove the folder to "
            "begin again: what it released counts all the same"
        )
    return RunFolder.create(path, data=data, noise=noise)


def _finished(
    output: Path, private: dict[str, Path], binding: list[bytes | memoryview]
) -> Certificate | None:
    """Return the certificate of a training that was cut off when its release was in place.

    Private files that still wait are put in their place; then what is left of its folder is erased
    and removed. Raises, changing nothing, if that would lose one of them.
    """
    path = run_folder(output)
    if not (output.is_dir() and path.is_dir()):
        return None
    names = {file.name for file in path.iterdir()} - {file.name for file in drafts(path)}
    if names - {"ledger.jsonl", *SECRET, _ITEMS, _PSEUDONYMS, _DRAFT}:
        return None  # not a run folder
    if "ledger.jsonl" not in names and names:
        return None
    certificate = load_release(output).certificate
    if names and read_journal(path / "ledger.jsonl").run != certificate.run:
        return None
    waiting = names & {_ITEMS, _PSEUDONYMS}
    if waiting - private.keys():
        raise InvalidDocument(
            f"private files of the training still wait in {path}; say where they go, as before"
        )
    for name, target in private.items():
        if name not in waiting and not target.exists():
            raise InvalidDocument(f"the training in {path} has no file for {target}")
    folder = RunFolder.resume(path, data=binding) if "key.json" in names else None
    try:
        for name in waiting:
            move_private(path / name, check_absent(private[name]))
    finally:
        if folder is not None:
            folder.close()
    erase(path)
    shutil.rmtree(path)
    return certificate


def _leave(folder: RunFolder) -> None:
    """Let go of the folder of a training that did not end; remove it if nothing was released."""
    if folder.ledger.events:
        folder.close()
    else:
        folder.erase_key()
        shutil.rmtree(folder.path, ignore_errors=True)


def _binding(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None,
    seed: int,
    holdout: float | None,
    has_pseudonyms: bool,
) -> list[bytes | memoryview]:
    """Return bytes that stand for the data and the configuration of a training."""
    configuration = {
        "taciturn": __version__,
        "solver": solver.name,
        "settings": settings(solver),
        "budget": asdict(budget) if budget else None,
        "seed": seed,
        "holdout": holdout,
        "pseudonyms": has_pseudonyms,
        "scale": asdict(ratings.scale),
    }
    arrays = (ratings.by_user.starts, ratings.by_user.columns, ratings.by_user.codes)
    return [
        json.dumps(configuration, sort_keys=True).encode(),
        *(_id_bytes(ids) for ids in (ratings.user_ids, ratings.item_ids)),
        *(array.data for array in arrays),
    ]


def _id_bytes(ids: pl.Series) -> bytes:
    return json.dumps([str(ids.dtype), ids.to_list()], ensure_ascii=False, default=str).encode()


def _delta(solver: Solver, budget: Budget | None) -> float:
    return budget.delta if budget else float(getattr(solver, "delta", DELTA))
