"""Outputs of a training: the release, and the private files that belong to its owner."""

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn._internal import validate
from taciturn._internal.files import check_absent
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.release.sign import read_private_key
from taciturn.release.write import NO_USERS, UsersOut
from taciturn.solvers.solver import Solver

ITEMS, PSEUDONYMS = "items.parquet", "pseudonyms.parquet"
"""Names of private files while they wait in the run folder."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a training writes, and how users appear in the release.

    Parameters
    ----------
    release
        The folder of the release; it must not exist yet.
    users_out
        Whether users appear in the release under their ids, under random pseudonyms, or not at all.
        Default: under their ids, but under unit `user` never.
    pseudonyms
        Private file for the map from ids to pseudonyms, with `users_out="pseudonyms"`.
    private_items
        Private file for item profiles that were never noised, where a solver has them.
    sign
        Private key, from `taciturn keygen`, to sign the release with.
    """

    release: str | Path
    users_out: UsersOut | str | None = None
    pseudonyms: str | Path | None = None
    private_items: str | Path | None = None
    sign: str | Path | None = None


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Outputs of one training, checked against its solver.

    `private` maps the name of a private file in the run folder to the path where it goes.
    """

    release: Path
    run_folder: Path
    users_out: UsersOut
    private: dict[str, Path]
    key: Ed25519PrivateKey | None

    @property
    def has_pseudonyms(self) -> bool:
        """Whether users appear under random pseudonyms."""
        return self.users_out is UsersOut.PSEUDONYMS

    def check_absent(self) -> None:
        """Raise if an output exists already, or its parent folder does not."""
        for path in (self.release, *self.private.values()):
            check_absent(path)


def run_folder(release: str | Path) -> Path:
    """Folder in which an interrupted training keeps what it needs to resume."""
    release = Path(release).absolute()
    return release.with_name(f"{release.name}.run")


def users_in_release(solver: Solver, users_out: UsersOut | str | None) -> UsersOut:
    """How users appear in the release; raises if the unit does not allow it."""
    protects_users = solver.unit is Unit.USER
    if users_out is None:
        return UsersOut.NONE if protects_users else UsersOut.IDS
    users_out = validate.choice("users_out", users_out, UsersOut)
    if protects_users and users_out is not UsersOut.NONE:
        raise InvalidParameter(NO_USERS)
    return users_out


def make_targets(outputs: Outputs, solver: Solver) -> Targets:
    """Check outputs against each other and against the solver."""
    release = Path(outputs.release).absolute()
    users_out = users_in_release(solver, outputs.users_out)
    if (users_out is UsersOut.PSEUDONYMS) != (outputs.pseudonyms is not None):
        raise InvalidParameter(
            "pseudonyms and a private file for their map go together: "
            "--users-out pseudonyms --pseudonyms-out FILE"
        )
    if outputs.private_items is not None and not solver.has_private_items:
        raise InvalidParameter(
            f"{solver.name} has no private item profiles: they are in the release"
        )
    if users_out is UsersOut.NONE and solver.has_private_items:
        raise InvalidParameter(f"{solver.name} releases users only; nothing is left without them")
    files = ((ITEMS, outputs.private_items), (PSEUDONYMS, outputs.pseudonyms))
    private = {name: Path(path).absolute() for name, path in files if path is not None}
    paths = (release, run_folder(release), *private.values())
    if len({path.resolve() for path in paths}) != len(paths):
        raise InvalidParameter("every output needs a path of its own")
    return Targets(
        release=release,
        run_folder=run_folder(release),
        users_out=users_out,
        private=private,
        key=read_private_key(outputs.sign) if outputs.sign is not None else None,
    )
