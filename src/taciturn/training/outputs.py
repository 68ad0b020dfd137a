"""Outputs of a training: the release, and the owner's private files."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn._internal import validate
from taciturn._internal.files import check_absent, check_pointer
from taciturn._internal.spelling import option
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.release.about import About
from taciturn.release.facts import Configuration
from taciturn.release.pseudonyms import read_pseudonyms
from taciturn.release.sign import read_private_key
from taciturn.release.write import UsersOut, no_users
from taciturn.solvers.solver import Solver

ITEMS, PSEUDONYMS = "items.parquet", "pseudonyms.parquet"
"""Names of private files in the run folder, before they are moved to their paths."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Output paths of a training, and how users appear in the release.

    Parameters
    ----------
    release
        Folder of the release; must not exist.
    users_out
        Users appear in the release under their ids, under random pseudonyms, or not at all.
        Default: under their ids; not at all if users fold in, as under unit `user`.
    pseudonyms
        Private file for the map from ids to pseudonyms, with `users_out="pseudonyms"`.
    pseudonyms_in
        Private map of an earlier training, whose users keep their pseudonyms. The new map has all
        of its rows too.
    private_items
        Private file for item profiles without noise, if the solver has them.
    sign
        Private key, from `taciturn keygen`, to sign the release with.
    latest
        Symbolic link to set to the release once it is in place, atomically; it may exist.
    configuration
        Configuration file that the release is to name, if the training has one.
    about
        Dataset name, owner, purpose and contact for the card of the release. Default: none.
    """

    release: str | Path
    users_out: UsersOut | str | None = None
    pseudonyms: str | Path | None = None
    pseudonyms_in: str | Path | None = None
    private_items: str | Path | None = None
    sign: str | Path | None = None
    latest: str | Path | None = None
    configuration: Configuration | None = None
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        validate.path("release", self.release)
        for name in ("pseudonyms", "pseudonyms_in", "private_items", "sign", "latest"):
            if getattr(self, name) is not None:
                validate.path(name, getattr(self, name))
        if self.users_out is not None:
            validate.choice("users_out", self.users_out, UsersOut)
        validate.instance("about", self.about, About, "build one, such as About(name='films')")
        if self.configuration is not None:
            validate.instance("configuration", self.configuration, Configuration, "or None")


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Outputs of one training, checked against its solver.

    `private` maps the name of each private file in the run folder to its final path. `known` is the
    map of pseudonyms of an earlier training.
    """

    release: Path
    run_folder: Path
    users_out: UsersOut
    private: dict[str, Path]
    known: pl.DataFrame | None
    key: Ed25519PrivateKey | None
    latest: Path | None
    configuration: Configuration | None
    about: About

    @property
    def has_pseudonyms(self) -> bool:
        """True if users appear under random pseudonyms."""
        return self.users_out is UsersOut.PSEUDONYMS

    def check_absent(self) -> None:
        """Raise if an output already exists, or its parent folder does not.

        The pointer to the latest release may exist, if it is a symbolic link.
        """
        for path in (self.release, *self.private.values()):
            check_absent(path)
        if self.latest is not None:
            check_pointer(self.latest)


def run_folder(release: str | Path) -> Path:
    """Run folder beside a release, from which an interrupted training resumes."""
    release = Path(release).absolute()
    return release.with_name(f"{release.name}.run")


def users_in_release(solver: Solver, users_out: UsersOut | str | None) -> UsersOut:
    """Form of users in the release; raises if the solver does not release users in that form."""
    if users_out is None:
        return UsersOut.NONE if solver.folds_in else UsersOut.IDS
    users_out = validate.choice("users_out", users_out, UsersOut)
    if solver.folds_in and users_out is not UsersOut.NONE:
        raise InvalidParameter(no_users(Unit(solver.unit)))
    return users_out


def make_targets(outputs: Outputs, solver: Solver) -> Targets:
    """Check outputs against each other and against the solver."""
    release = Path(outputs.release).absolute()
    users_out = users_in_release(solver, outputs.users_out)
    if (users_out is UsersOut.PSEUDONYMS) != (outputs.pseudonyms is not None):
        raise InvalidParameter(
            f"{option('users_out', 'pseudonyms')} and "
            f"{option('pseudonyms_out', 'FILE', python='pseudonyms')} must be passed together: "
            "the file "
            "holds the private map from user ids to pseudonyms"
        )
    if outputs.pseudonyms_in is not None and users_out is not UsersOut.PSEUDONYMS:
        raise InvalidParameter(
            f"{option('pseudonyms_in')} needs {option('users_out', 'pseudonyms')} and "
            f"{option('pseudonyms_out', 'FILE', python='pseudonyms')}"
        )
    if outputs.private_items is not None and not solver.has_private_items:
        raise InvalidParameter(
            f"{solver.name} has no private item profiles; leave out "
            f"{option('private_items_out', python='private_items')}"
        )
    if users_out is UsersOut.NONE and solver.has_private_items:
        raise InvalidParameter(
            f"{solver.name} releases users only; leave out {option('users_out', 'none')}"
        )
    files = ((ITEMS, outputs.private_items), (PSEUDONYMS, outputs.pseudonyms))
    private = {name: Path(path).absolute() for name, path in files if path is not None}
    latest = Path(outputs.latest).absolute() if outputs.latest is not None else None
    paths = (release, run_folder(release), *private.values())
    if latest is not None and latest in paths:
        raise InvalidParameter(f"{option('latest')} must be another path than the other outputs")
    if len({path.resolve() for path in paths}) != len(paths):
        raise InvalidParameter("outputs must have different paths")
    return Targets(
        release=release,
        run_folder=run_folder(release),
        users_out=users_out,
        private=private,
        known=None if outputs.pseudonyms_in is None else read_pseudonyms(outputs.pseudonyms_in),
        key=read_private_key(outputs.sign) if outputs.sign is not None else None,
        latest=latest,
        configuration=outputs.configuration,
        about=outputs.about,
    )
