"""Compare what two trees of this project compute, bit for bit, on this machine.

    python tools/compare_trees.py COMMIT

Checks COMMIT out into a second worktree, builds it in an environment of its own, trains every
solver under every unit with the test noise in both trees, with one and with four threads, and
compares the numeric fields of all events, every released table and the final arrays. Texts are not
compared. Bits differ between instruction sets, so results are never kept.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FACTORS = 6
THREADS = (1, 4)

CASES: dict[str, dict[str, Any]] = {
    "als value": {"solver": "als", "unit": "value", "factors": FACTORS, "iterations": 3},
    "als value, no pattern features": {
        "solver": "als",
        "unit": "value",
        "factors": FACTORS,
        "iterations": 3,
        "mask_features": False,
    },
    "als value, uncertainty": {
        "solver": "als",
        "unit": "value",
        "factors": FACTORS,
        "iterations": 3,
        "uncertainty": True,
    },
    "als value, uncertainty, no pattern features": {
        "solver": "als",
        "unit": "value",
        "factors": FACTORS,
        "iterations": 3,
        "mask_features": False,
        "uncertainty": True,
    },
    "als rating": {"solver": "als", "unit": "rating", "factors": FACTORS, "iterations": 8},
    "als user": {"solver": "als", "unit": "user", "factors": FACTORS, "iterations": 8},
    "bias value": {"solver": "bias", "unit": "value"},
    "bias rating": {"solver": "bias", "unit": "rating"},
    "bias user": {"solver": "bias", "unit": "user"},
    "gradient": {"solver": "gradient", "factors": FACTORS, "iterations": 8},
    "input-perturbation": {"solver": "input-perturbation", "factors": FACTORS, "iterations": 3},
    "paper": {"solver": "paper", "factors": FACTORS, "iterations": 20, "epsilon_i": 0.4},
    "paper as run": {
        "solver": "paper",
        "factors": FACTORS,
        "iterations": 20,
        "epsilon_i": 0.4,
        "centre": "item-mean",
        "tau": 5.0,
    },
    "non-private": {"solver": "non-private", "factors": FACTORS, "iterations": 3},
    "non-private-gradient": {"solver": "non-private-gradient", "factors": FACTORS, "iterations": 8},
    "non-private-bias": {"solver": "non-private-bias"},
}


def main(commit: str) -> None:
    """Run both trees and compare; exit code 1 if anything differs."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        run("git", "-C", ROOT, "worktree", "add", "--detach", before, commit)
        try:
            venv.create(before / ".venv", with_pip=True)
            python = before / ".venv" / "bin" / "python"
            run(python, "-m", "pip", "install", "--quiet", before)
            files = [Path(folder) / "before.npz", Path(folder) / "now.npz"]
            worker = Path(__file__).with_name("train_all.py")
            cases = json.dumps({"cases": CASES, "threads": THREADS})
            for each, file in zip((python, sys.executable), files, strict=True):
                run(each, worker, file, cases, cwd=folder)
            differences = compare(*files)
        finally:
            run("git", "-C", ROOT, "worktree", "remove", "--force", before)
    for line in differences:
        print(line)
    sys.exit(1 if differences else 0)


def compare(before: Path, now: Path) -> list[str]:
    """Lines that say what differs between two results."""
    with np.load(before) as old, np.load(now) as new:
        lines = [f"only before: {name}" for name in sorted(set(old) - set(new))]
        lines += [f"only now: {name}" for name in sorted(set(new) - set(old))]
        numbers = 0
        for name in sorted(set(old) & set(new)):
            one, two = old[name], new[name]
            numbers += one.size
            if one.shape != two.shape or one.tobytes() != two.tobytes():
                lines.append(f"differs: {name} {one.shape} {two.shape}")
        for case, options in CASES.items():
            forced = options.get("factors")
            found = new[f"{case} / 1 / items factors"].shape[1]
            if forced is not None and found < forced:
                lines.append(f"not exercised: {case} has {found} factors")
        print(f"{len(old)} arrays before, {len(new)} now, {numbers:,} numbers compared")
    return lines


def run(*command: object, **options: Any) -> None:
    """Run a command; raise if it fails."""
    subprocess.run([*map(str, command)], check=True, **options)


if __name__ == "__main__":
    main(sys.argv[1])
