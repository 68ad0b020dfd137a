"""Mutate inputs and kill trainings, or repeat one mutated input.

python -m tests.torture [--minutes M] [--inputs N] [--kills N] [--jobs N] [--seed S] [--output DIR]
python -m tests.torture NAME --seed S --index I
"""

import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

from tests.torture.catalog import TARGETS
from tests.torture.runner import Plan, carry_out
from tests.torture.workers import tried

OUTPUT = Path("build") / "torture"


def main() -> int:
    """Exit code: 0 without findings, 1 with some."""
    parser = ArgumentParser(
        "python -m tests.torture", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=sorted(TARGETS), help="target of one input")
    parser.add_argument("--index", type=int, help="the input to repeat")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="default: %(default)s")
    parser.add_argument("--minutes", type=float, help="time limit; default: none")
    parser.add_argument("--inputs", type=int, default=Plan.inputs, help="default: %(default)s")
    parser.add_argument("--kills", type=int, default=Plan.kills, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=Plan.jobs, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="default: %(default)s")
    parser.add_argument("--remark", default=Plan.remark, help="sentence for the report")
    given = parser.parse_args()
    if (given.name is None) != (given.index is None):
        parser.error("NAME and --index belong together")
    if given.name is not None:
        return repeat(given.name, given.seed, given.index)
    plan = Plan(
        inputs=given.inputs,
        kills=given.kills,
        minutes=given.minutes,
        jobs=given.jobs,
        seed=given.seed,
        remark=given.remark,
    )
    return 1 if carry_out(plan, given.output) else 0


def repeat(name: str, seed: int, index: int) -> int:
    """Try one input in this process and print its outcome."""
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    result = tried(TARGETS[name](folder), seed, index)
    sys.stdout.write(f"{result.outcome}\n{result.finding or ''}\nfiles: {folder}\n")
    return 1 if result.finding else 0


if __name__ == "__main__":
    sys.exit(main())
