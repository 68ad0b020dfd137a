"""Run every benchmark (or those named) and keep the numbers: python -m benchmarks [NAME...]."""

import json
import sys
from importlib import import_module
from pathlib import Path

NAMES = [
    "accounting",
    "accuracy",
    "coverage",
    "noise",
    "profiles",
    "reading",
    "recommend",
    "scaling",
    "stopping",
    "training",
]
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the benchmarks, print their tables, write one JSON file each."""
    RESULTS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        module = import_module(f"benchmarks.{name}")
        rows = module.run()
        print(f"\n{name}: {module.__doc__.splitlines()[0]}")
        for row in rows:
            print("  " + "  ".join(f"{key} {value}" for key, value in row.items()))
        (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
