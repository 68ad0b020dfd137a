"""Run benchmarks and write one report: python -m benchmarks [NAME ...] [--all]."""

import json
import sys
from argparse import ArgumentParser
from importlib import import_module
from inspect import signature
from pathlib import Path

from benchmarks.report import Section, machine, write

SPEED = ("kernels", "isa", "noise", "training", "recommend", "reading", "startup", "peers")
"""Benchmarks run by default; about 15 minutes once other libraries are installed."""

LONG = (
    "accounting",
    "accuracy",
    "intervals",
    "lists",
    "profiles",
    "regimes",
    "small",
    "stopping",
    "scaling",
    "where",
    "whole",
)
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run benchmarks, print their tables, and write results/NAME.json and the report."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*SPEED, *LONG)))
    parser.add_argument("--all", action="store_true", help="everything: several hours")
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds of regimes")
    parser.add_argument("--only", metavar="SOURCES", help="sources of regimes, datasets of lists")
    given = parser.parse_args()
    names = given.names or (SPEED + LONG if given.all else SPEED)
    if unknown := set(names) - {*SPEED, *LONG}:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    options = {"seeds": given.seeds, "only": given.only and tuple(given.only.split(","))}
    options = {key: value for key, value in options.items() if value is not None}
    if options and not {"regimes", "lists"} & set(names):
        parser.error("--seeds and --only are options of regimes, --only also of lists")
    if given.seeds is not None and given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    RESULTS.mkdir(exist_ok=True)
    about, sections = machine(), []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        module = import_module(f"benchmarks.{name}")
        title, _, text = (module.__doc__ or "").partition("\n")
        taken = signature(module.run).parameters
        rows = module.run(**{key: value for key, value in options.items() if key in taken})
        bars = module.bars(rows) if hasattr(module, "bars") else []
        sections.append(Section(name, title, text.strip(), rows, bars))
        (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
        print(f"\n{name}: {title}")
        for row in rows:
            print("  " + "  ".join(f"{key} {value}" for key, value in row.items()))
        for bar in bars:
            print(
                f"  {'met    ' if bar.is_met else 'NOT MET'}  {bar.name}: "
                f"{bar.found} {bar.sign} {bar.bound}"
            )
        write(RESULTS, sections, about)  # results so far survive a failure of the next benchmark
    print(f"\n{RESULTS / 'report.md'} and report.json have it all")


if __name__ == "__main__":
    main()
