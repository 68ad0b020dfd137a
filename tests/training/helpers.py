"""Short trainings with known noise."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from taciturn._internal import strict_json
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument
from taciturn.release.pseudonyms import make_pseudonyms, write_pseudonyms
from taciturn.training.outputs import Outputs
from taciturn.training.train import Trained, train
from tests.known_noise import known_noise
from tests.solvers.helpers import BUDGET, random_ratings, small_solver

Outcome = dict[str, object]

RATINGS = random_ratings(1, users=40, items=25)


def go(
    output: Path,
    name: str = "gradient",
    ratings: Ratings = RATINGS,
    private: dict[str, Any] | None = None,
    **options: Any,
) -> Trained:
    """Train with known noise, with `private` options of the outputs."""
    solver = options.pop("solver", None) or small_solver(name, iterations=6)
    facts: dict[str, Any] = {"budget": BUDGET if solver.is_private else None, "seed": 3}
    outputs = Outputs(release=output, **(private or {}))
    with known_noise(5):
        return train(ratings, solver, output=outputs, **(facts | options))


def stop_at(number: int) -> Any:
    """Progress function that interrupts as Ctrl-C does."""

    def progress(done: int, total: int) -> None:
        if done == number:
            raise KeyboardInterrupt

    return progress


def private_outputs(folder: Path) -> dict[str, object]:
    """Every kind of output; half of the users keep the pseudonyms of an earlier map."""
    known = folder.parent / "known.parquet"
    if not known.exists():
        ids = RATINGS.user_ids.gather_every(2)
        write_pseudonyms(make_pseudonyms(ids, b"an earlier run"), known)
    return {
        "private_items": folder / "items",
        "users_out": "pseudonyms",
        "pseudonyms": folder / "names",
        "pseudonyms_in": known,
        "latest": folder / "latest",
    }


def known_start() -> AbstractContextManager[object]:
    """Let users start from known profiles, so that all trainings release the same values."""
    return patch("taciturn.mechanisms.run_folder.secrets.randbits", lambda bits: 1)


def resume(folder: Path) -> None:
    """Resume a training; a training that had ended leaves nothing to resume."""
    try:
        with known_start():
            go(folder / "release", "paper", private=private_outputs(folder), resume=True)
    except InvalidDocument as error:
        if "nothing is left to resume" not in str(error):
            raise


def outcome(folder: Path) -> Outcome:
    """Everything that a finished training leaves, but for the random name of its run."""
    release = folder / "release"
    document = strict_json.read(release / "certificate.json")
    document["certificate"]["ledger"].pop("run")
    return {
        "left": sorted(path.name for path in folder.iterdir()),
        "latest": str((folder / "latest").readlink()),
        "released": sorted(path.name for path in release.iterdir()),
        "certificate": document,
        "tables": [(release / "users.parquet").read_bytes()],
        "private": [(folder / name).read_bytes() for name in ("items", "names")],
        "modes": [(folder / name).stat().st_mode & 0o777 for name in ("items", "names")],
    }
