"""Workspace of a training: the run folder beside its release, and resuming from it.

While a training runs, the folder `RELEASE.run` holds its ledger, noise key and checkpoints. Private
files stay there until the release is written. Then they are moved to their paths, the key is
erased, and the folder is deleted.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import polars as pl

from taciturn._internal.files import check_absent, drafts, move_private
from taciturn._version import __version__
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.journal import read_journal
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument, OutputError
from taciturn.mechanisms.run_folder import SECRET, RunFolder, erase
from taciturn.release.read import load_release
from taciturn.release.write import write_private_items, write_release
from taciturn.solvers.contract import Fit
from taciturn.solvers.solver import Solver
from taciturn.training.outputs import ITEMS, PSEUDONYMS, Targets

Binding = list[bytes | memoryview]
"""Bytes that identify the data and configuration of a training; its noise is bound to them."""

_LEDGER, _DRAFT = "ledger.jsonl", "release"


@dataclass(frozen=True, eq=False)
class Workspace:
    """Run folder of a running training, and its targets."""

    folder: RunFolder
    targets: Targets

    @property
    def user_seed(self) -> int | None:
        """Secret seed of the users' initial profiles; only pseudonyms need one."""
        return self.folder.secret_seed() if self.targets.has_pseudonyms else None

    def write(self, fit: Fit, certificate: Certificate) -> None:
        """Write the release, then move the private files to their paths."""
        targets = self.targets
        waiting = {name: self.folder.path / name for name in targets.private}
        for path in waiting.values():
            path.unlink(missing_ok=True)
        if ITEMS in waiting:
            write_private_items(fit, waiting[ITEMS])
        write_release(
            fit,
            certificate,
            targets.release,
            users_out=targets.users_out,
            pseudonyms=waiting.get(PSEUDONYMS),
            key=targets.key,
            draft=self.folder.path / _DRAFT,
        )
        for name, path in targets.private.items():
            move_private(waiting[name], path)


@contextmanager
def open_workspace(targets: Targets, binding: Binding, *, resume: bool) -> Iterator[Workspace]:
    """Workspace of a new or resumed training.

    It is deleted at the end. After a failure it is kept for resuming, unless nothing was released.
    """
    folder = _open_folder(targets, binding, resume)
    try:
        yield Workspace(folder, targets)
    except BaseException:
        _leave(folder)
        raise
    try:
        folder.erase_key()
    finally:
        folder.close()
    shutil.rmtree(folder.path)


def finish_interrupted(targets: Targets, binding: Binding) -> Certificate | None:
    """Finish a training that was interrupted after its release was written.

    Moves the remaining private files to their paths, erases the key and deletes the run folder.
    Returns the certificate of the release, or None if there is no such training. Raises, without
    changes, if a private file would be lost.
    """
    release, path, private = targets.release, targets.run_folder, targets.private
    if not (release.is_dir() and path.is_dir()):
        return None
    names = {file.name for file in path.iterdir()} - {file.name for file in drafts(path)}
    if names - {_LEDGER, *SECRET, ITEMS, PSEUDONYMS, _DRAFT}:
        return None  # not a run folder
    if _LEDGER not in names and names:
        return None
    certificate = load_release(release).certificate
    if names and read_journal(path / _LEDGER).run != certificate.run:
        return None
    waiting = names & {ITEMS, PSEUDONYMS}
    if waiting - private.keys():
        raise InvalidDocument(
            f"{path} still holds private output files; pass the same output paths as in the first "
            "run"
        )
    for name, target in private.items():
        if name not in waiting and not target.exists():
            raise InvalidDocument(
                f"the training in {path} has no private file for {target}; pass the same output "
                "paths as in the first run"
            )
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


def make_binding(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None,
    *,
    seed: int,
    holdout: float | None,
    has_pseudonyms: bool,
) -> Binding:
    """Bytes that identify the data and configuration of a training."""
    configuration = {
        "taciturn": __version__,
        "solver": solver.name,
        "settings": solver.settings,
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


def _open_folder(targets: Targets, binding: Binding, resume: bool) -> RunFolder:
    path = targets.run_folder
    if resume:
        if not path.exists():
            raise InvalidDocument(f"there is no interrupted training in {path}; leave out --resume")
        return RunFolder.resume(path, data=binding)
    if path.exists():
        raise OutputError(
            f"an interrupted training is in {path}; continue with --resume, or delete the folder "
            "to start again (its noisy answers still count towards the total privacy cost)"
        )
    return RunFolder.create(path, data=binding)


def _leave(folder: RunFolder) -> None:
    """Close the run folder of a failed training; delete it if nothing was released."""
    if folder.ledger.events:
        folder.close()
    else:
        folder.erase_key()
        shutil.rmtree(folder.path, ignore_errors=True)
