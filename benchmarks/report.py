"""Report of a run: the machine, requirements and results, and every table."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import taciturn
from benchmarks.native import multiply_adds_per_ns, processor, triad_gb_per_s
from taciturn import _core

Row = dict[str, object]


@dataclass(frozen=True)
class Bar:
    """Bound of a measured number, its sign (≤ or ≥), and whether it is met."""

    name: str
    found: float
    bound: float
    is_met: bool
    sign: str = "≤"

    @classmethod
    def at_least(cls, name: str, found: object, bound: float) -> "Bar":
        """Bar that a number must reach."""
        number = float(str(found))
        return cls(name, number, round(bound, 3), number >= bound, "≥")

    @classmethod
    def at_most(cls, name: str, found: object, bound: float) -> "Bar":
        """Bar that a number must not exceed."""
        number = float(str(found))
        return cls(name, number, round(bound, 3), number <= bound)


@dataclass(frozen=True)
class Section:
    """One benchmark: name, title, description, rows and bars."""

    name: str
    title: str
    about: str
    rows: list[Row]
    bars: list[Bar]


def machine() -> Row:
    """Description of this machine and its peak rates."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: Row = {
        "processor": processor(),
        "threads": threads,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "taciturn": taciturn.__version__,
        "commit": _commit(),
        "kernels": f"{_core.instruction_set()}, {_core.compiler()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "polars")),
    }
    for count in (1, 2):
        ending = "" if count == 1 else "s"
        found[f"triad_gb_per_s, {count} thread{ending}"] = round(triad_gb_per_s(count), 1)
        found[f"multiply_adds_per_ns, {count} thread{ending}"] = round(
            multiply_adds_per_ns(count), 1
        )
    return found


def write(folder: Path, sections: list[Section], about: Row) -> None:
    """Write report.json and report.md."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    whole = {"when": when, "machine": about, "benchmarks": [asdict(each) for each in sections]}
    (folder / "report.json").write_text(json.dumps(whole, indent=2) + "\n")
    parts = [
        f"# Benchmarks of Taciturn {taciturn.__version__}",
        f"Measured {when}, all in one run.",
    ]
    parts += ["## Machine", _table([{"what": key, "is": value} for key, value in about.items()])]
    bars: list[Row] = [
        {
            "what": bar.name,
            "found": bar.found,
            "required": f"{bar.sign} {bar.bound}",
            "": "met" if bar.is_met else "NOT MET",
        }
        for section in sections
        for bar in section.bars
    ]
    if bars:
        parts += ["## Requirements", _table(bars)]
    for section in sections:
        parts += [f"## {section.name}: {section.title}", section.about]
        # Consecutive rows with the same columns form one table.
        columns = list(dict.fromkeys(tuple(row) for row in section.rows))
        parts += [_table([row for row in section.rows if tuple(row) == each]) for each in columns]
    (folder / "report.md").write_text("\n\n".join(part for part in parts if part) + "\n")


def _table(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return done.stdout.strip() or "unknown"
