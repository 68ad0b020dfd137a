"""Publishing a finished training: one commit point, then steps that can be repeated.

::

    prepare   write private files and outputs.json to the run folder
    commit    rename the release, which is drafted in the run folder, to its path
    deliver   copy each private file to its path, then remove it from the run folder
    point     let the pointer to the latest release name this one
    erase     overwrite and remove the noise key and the other secret files
    delete    remove the rest of the run folder, its ledger last

A crash before the commit leaves no release: the run resumes and prepares again. A crash after the
commit leaves a complete release: `finish` repeats whatever is left, and needs no noise key. Which
of the two happened is read off the disk: the release at its path names the run in the ledger.
"""

import json
import os
from pathlib import Path

from taciturn._internal import files
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.journal import read_journal
from taciturn.errors import InvalidDocument
from taciturn.mechanisms.run_files import (
    LEDGER,
    SECRET,
    Binding,
    delete,
    intact_key,
    lock,
)
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.release.pseudonyms import make_pseudonyms, write_pseudonyms
from taciturn.release.read import read_own_release
from taciturn.release.write import write_private_items, write_release
from taciturn.solvers.contract import Fit
from taciturn.training.outputs import ITEMS, PSEUDONYMS, Targets

OUTPUTS, DRAFT = "outputs.json", "release"
"""Files of a run folder: where private files go, and the draft of the release."""

RUN_NAMES = frozenset({LEDGER, *SECRET, OUTPUTS, DRAFT, ITEMS, PSEUDONYMS})
"""Names that a run folder may contain."""


def publish(folder: RunFolder, targets: Targets, fit: Fit, certificate: Certificate) -> None:
    """Write the release and the private files, then delete the run folder."""
    path = folder.path
    pseudonyms = None
    if targets.has_pseudonyms and fit.model.users is not None:
        secret = folder.secret_key(b"pseudonyms")
        pseudonyms = make_pseudonyms(fit.model.users.ids, secret, targets.known)
        write_pseudonyms(pseudonyms, path / PSEUDONYMS)
    if ITEMS in targets.private:
        write_private_items(fit, path / ITEMS)
    files.write_file(path / OUTPUTS, _outputs(targets), is_private=True, replace=True)
    targets.check_absent()
    write_release(
        fit,
        certificate,
        targets.release,
        users_out=targets.users_out,
        pseudonyms=pseudonyms,
        key=targets.key,
        draft=path / DRAFT,
        date=folder.date,
        configuration=targets.configuration,
        about=targets.about,
    )
    _deliver(path, folder.ledger.run, targets)
    _point(folder.ledger.run, targets)
    folder.delete()


def finish_interrupted(targets: Targets, binding: Binding) -> Certificate | None:
    """Finish a training that was interrupted after its release was written.

    Returns the certificate of the release, or None if there is no such training. Raises, and loses
    nothing, if the private files would go to other paths than in the first run.
    """
    path = targets.run_folder
    if targets.release.is_dir() and not path.exists():
        raise InvalidDocument(
            f"{targets.release} is complete and there is no {path.name}: nothing is left to resume"
        )
    if not (targets.release.is_dir() and path.is_dir() and is_run_folder(path)):
        return None
    certificate = read_own_release(targets.release).certificate
    handle = lock(path)
    try:
        if (path / LEDGER).exists():
            if read_journal(path / LEDGER).run != certificate.run:
                return None
            _check_outputs(path, targets)
            if (key := intact_key(path)) is not None:
                key.check_binding(binding)
            _deliver(path, certificate.run, targets)
            if (path / OUTPUTS).exists():  # otherwise the pointer was set, perhaps anew since
                _point(certificate.run, targets)
        delete(path)
    finally:
        os.close(handle)
    return certificate


def _deliver(path: Path, run: str, targets: Targets) -> None:
    """Move the private files to their paths; the release is on disk before the first of them."""
    with files.reported(targets.release):
        files.sync(targets.release.parent)
    for name, target in targets.private.items():
        if (path / name).exists():
            files.move_private(path / name, target, tag=f"{run}-{name}")


def _point(run: str, targets: Targets) -> None:
    """Let the pointer to the latest release name the release; readers see the old or the new."""
    if targets.latest is not None:
        files.point(targets.latest, targets.release, tag=f"{run}-latest")


def _check_outputs(path: Path, targets: Targets) -> None:
    """Raise unless the outputs go to the same paths as when they were written."""
    outputs = path / OUTPUTS  # removed after the last delivery
    if outputs.exists() and outputs.read_bytes() != _outputs(targets):
        raise InvalidDocument(
            f"{path} still holds private output files; pass the same output paths as in the first "
            "run"
        )


def is_run_folder(path: Path) -> bool:
    """True if a folder has nothing but the files of a run; the last of them is its ledger."""
    names = {file.name for file in path.iterdir()} - {file.name for file in files.drafts(path)}
    return names <= RUN_NAMES and (LEDGER in names or not names)


def _outputs(targets: Targets) -> bytes:
    """Contents of outputs.json: the path of each private file and of the pointer."""
    paths = {name: str(path) for name, path in targets.private.items()}
    if targets.latest is not None:
        paths["latest"] = str(targets.latest)
    return json.dumps(paths).encode()
