"""Workspace of a training: the run folder beside its release, and resuming from it.

While a training runs, the folder `RELEASE.run` holds its ledger, noise key and checkpoints. At the
end `publish` writes the release and deletes the folder.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from taciturn._internal.files import try_link
from taciturn._internal.spelling import option
from taciturn._version import __version__
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.journal import read_journal
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.run_files import LEDGER, Binding, delete, intact_key, is_locked
from taciturn.mechanisms.run_folder import RunFolder, remove_leftover
from taciturn.release.pseudonyms import PSEUDONYM, same_ids
from taciturn.solvers.contract import Fit
from taciturn.solvers.solver import Solver
from taciturn.training.outputs import Targets
from taciturn.training.publish import OUTPUTS, is_run_folder, publish


@dataclass(frozen=True, eq=False)
class Workspace:
    """Run folder of a running training, and its targets."""

    folder: RunFolder
    targets: Targets

    @property
    def user_seed(self) -> int | None:
        """Secret seed of the users' initial profiles; only pseudonyms need one."""
        return self.folder.secret_seed() if self.targets.has_pseudonyms else None

    def publish(self, fit: Fit, certificate: Certificate) -> None:
        """Write the release and the private files, then delete the run folder."""
        publish(self.folder, self.targets, fit, certificate)


@contextmanager
def open_workspace(targets: Targets, binding: Binding, *, resume: bool) -> Iterator[Workspace]:
    """Workspace of a new or resumed training.

    After a failure the run folder is kept for resuming, unless nothing was released; then it is
    deleted. A note on the exception says so.
    """
    if targets.latest is not None:
        try_link(targets.latest)
    workspace = Workspace(_open_folder(targets, binding, resume), targets)
    try:
        yield workspace
    except BaseException as error:
        _leave(workspace, error)
        raise
    finally:
        workspace.folder.close()


def make_binding(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None,
    *,
    seed: int,
    holdout: float | None,
    targets: Targets,
) -> Binding:
    """Bytes that identify the data and configuration of a training."""
    configuration = {
        "taciturn": __version__,
        "solver": solver.name,
        "settings": solver.settings,
        "budget": asdict(budget) if budget else None,
        "seed": seed,
        "holdout": holdout,
        "pseudonyms": targets.has_pseudonyms,
        "scale": asdict(ratings.scale),
        "configuration": targets.configuration.to_dict() if targets.configuration else None,
    }
    known = targets.known
    names = () if known is None else (same_ids(known, ratings.user_ids), known[PSEUDONYM])
    features = ratings.item_features if solver.uses_item_features else None
    public = ratings.public_ratings if solver.uses_public_ratings else None
    arrays = (ratings.by_user.starts, ratings.by_user.columns, ratings.by_user.codes)
    return [
        json.dumps(configuration, sort_keys=True).encode(),
        *(_id_bytes(ids) for ids in (ratings.user_ids, ratings.item_ids, *names)),
        *(array.data for array in arrays),
        *(each.fingerprint() for each in (features, public) if each is not None),
    ]


def _id_bytes(ids: pl.Series) -> bytes:
    return json.dumps([str(ids.dtype), ids.to_list()], ensure_ascii=False, default=str).encode()


def _open_folder(targets: Targets, binding: Binding, resume: bool) -> RunFolder:
    path = targets.run_folder
    in_use = OutputError(
        f"another training is writing {targets.release} at this moment; wait until it has ended, "
        "or choose another output"
    )
    if path.is_dir() and is_locked(path):
        raise in_use
    if path.is_dir() and _is_unused(path) and not (resume and intact_key(path)):
        delete(path)
    if resume:
        remove_leftover(path)
        if not path.exists():
            raise InvalidDocument(
                f"there is no interrupted training in {path}; leave out {option('resume', True)}"
            )
        return RunFolder.resume(path, data=binding)
    if path.exists():
        raise OutputError(
            f"an interrupted training is in {path}; continue with {option('resume', True)}, or "
            "delete the folder "
            "to start again (its noisy answers still count towards the total privacy cost)"
        )
    try:
        return RunFolder.create(path, data=binding)
    except NoiseReuse:
        raise in_use from None


def _is_unused(path: Path) -> bool:
    """True for a run folder from which nothing was released: no event is recorded."""
    if not is_run_folder(path) or (path / OUTPUTS).exists():
        return False
    ledger = path / LEDGER
    return not ledger.exists() or not read_journal(ledger).events


def _leave(workspace: Workspace, error: BaseException) -> None:
    """Note on a failed training's exception; its run folder is deleted if nothing was released."""
    folder, targets = workspace.folder, workspace.targets
    if not folder.path.exists():
        return  # the failure came after everything was done
    is_prepared = (folder.path / OUTPUTS).exists()
    if is_prepared and targets.release.exists():
        error.add_note(
            f"{targets.release} is complete, but {folder.path} is not cleared yet: run the command "
            f"again with {option('resume', True)}, which releases nothing new"
        )
    elif is_prepared or folder.ledger.events:
        error.add_note(
            f"noisy answers released so far count; they are recorded in {folder.path}: run the "
            f"command again with {option('resume', True)} to continue with the same noise, or "
            "delete the folder to "
            "start again"
        )
    else:
        folder.delete()
