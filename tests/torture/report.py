"""Report of a run, as JSON and as the page of the documentation."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Results = dict[str, Any]

HEAD = """# Mutated inputs and killed trainings

For reviewers: the last report of `make torture`, which writes this page to
`build/torture/report.md`. Without options it tries 1,000,000 mutated inputs and kills 1,000
trainings. `TORTURE="--minutes 5"` shortens it, and the tests contain a short form. This page states
what was really run. A finding stands here with the command that repeats its input, and a test
checks that it is fixed.
"""

INPUTS = """## Mutated inputs

Files of every kind that Taciturn reads are mutated: bytes are flipped, inserted, removed, spliced
and repeated, lengths are replaced, lines and fields are swapped, and numbers, ids and JSON values
are made odd. An input may only be refused with a one-line `TaciturnError`, or be accepted. If it is
accepted, it is checked further:

- Ratings are consistent and on their scale. A changed row of a text file changes no other row.
- With its owner's key, a release passes only if no byte differs. Without a key, one that was
  mutated and given new checksums passes only if its certificate follows from its ledger and its
  status is not better than before.
- The ε of a certificate is never below the one that its events give, recomputed with 50 digits.
- A training that is resumed from a changed run folder ends in the files of an undisturbed one.

Workers try the inputs in batches, with {gigabytes:g} GiB of memory. One that takes {seconds:g}
seconds of processor time for an input, or reports nothing for {silence:g} seconds, is killed, and
that is a finding. Parquet files are read by polars, which can abort the process. A guard then
prints a line that names the file and exits with code 2.
"""

KILLS = """## Killed trainings

Trainings run through the command line, with every privacy unit, pseudonyms, private files and a
signature. SIGKILL or Ctrl-C (SIGINT) ends each of them up to seven times, at random moments and
just after files appear. Each is resumed until it is done. Its files must then be those of an
undisturbed training, to the byte, and its ledger must never lose an event.
"""

FAULTS = """## Faults at system calls

Inside one process, a system call of a training fails: the process ends, the call reports an error,
the disk is full from then on, or Ctrl-C arrives. About half of the trainings meet a second fault
while they are resumed. In the end their files must be those of an undisturbed training.
"""


def write_report(results: Results, folder: Path) -> None:
    """Write report.json and report.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(results, indent=2) + "\n")
    (folder / "report.md").write_text(page(results))


def page(results: Results) -> str:
    """Page of the documentation with these results."""
    limits, seconds = results["limits"], results["seconds"]
    found = results["findings"]
    facts = [
        ("date", results["date"]),
        ("mutated inputs", f"{results['inputs']:,}"),
        ("killed processes", f"{results['kills']:,} in {results['trainings']:,} trainings"),
        ("findings", f"{len(found)}"),
        ("time", f"{seconds // 60} min {seconds % 60} s, {results['jobs']} jobs"),
        ("seed", f"{results['seed']}"),
        ("versions", ", ".join(f"{name} {each}" for name, each in results["versions"].items())),
        (
            "machine",
            f"{results['machine']['processors']} processors, {results['machine']['system']}",
        ),
    ]
    parts = [
        HEAD,
        "## Report\n",
        table(("", ""), facts),
        *([f"{results['remark']}\n"] if results["remark"] else []),
        *([listing(found)] if found else []),
        INPUTS.format(
            seconds=limits["processor_seconds"],
            silence=limits["silent_seconds"],
            gigabytes=limits["bytes"] / 2**30,
        ),
        outcome_table(results),
        f"Workers replaced after an input had ended them: {results['replaced_workers']:,}.\n",
        KILLS,
        phase_table(results["kills_by_phase"]),
        FAULTS,
        fault_table(results["faults"]),
    ]
    return "\n".join(parts)


def listing(findings: list[str]) -> str:
    """Findings, each as a block of text."""
    return "\n".join(f"```text\n{each.strip()}\n```\n" for each in findings[:50])


def table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Markdown table."""
    lines: list[tuple[str, ...]] = [names, tuple("---" for _ in names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def outcome_table(results: Results) -> str:
    """Inputs of each target by outcome."""
    rows = []
    for name, outcomes in results["outcomes"].items():
        accepted = {"accepted", "accepted unchanged"} & outcomes.keys()
        refused = Counter({each: n for each, n in outcomes.items() if each not in accepted})
        rows.append(
            (
                name,
                f"{sum(outcomes.values()):,}",
                f"{outcomes.get('accepted', 0):,}",
                f"{outcomes.get('accepted unchanged', 0):,}",
                "; ".join(f"{short(each)} {n:,}" for each, n in refused.most_common()),
                f"{results['slowest_processor_seconds'][name]:g}",
            )
        )
    names = ("input", "number", "accepted", "unchanged", "refused by", "slowest, CPU s")
    return table(names, rows)


def short(outcome: str) -> str:
    """Outcome without its first word."""
    return outcome.removeprefix("refused: ")


def phase_table(kills: dict[str, int]) -> str:
    """Kills by phase and signal."""
    counts: Counter[tuple[str, str]] = Counter()
    for place, count in kills.items():
        _, signal, phase = place.split(": ")
        counts[phase, signal] += count
    phases = sorted({phase for phase, _ in counts})
    rows = [
        (phase, f"{counts[phase, 'SIGKILL']:,}", f"{counts[phase, 'SIGINT']:,}") for phase in phases
    ]
    return table(("killed", "SIGKILL", "SIGINT"), rows)


def fault_table(faults: dict[str, int]) -> str:
    """Trainings by kind and number of their faults."""
    names = {
        "KILL": "the process ends",
        "ERROR": "a system call fails",
        "FULL": "the disk is full",
        "INTERRUPT": "Ctrl-C arrives",
    }
    rows = [
        (text, f"{faults.get(f'{kind}: once', 0):,}", f"{faults.get(f'{kind}: twice', 0):,}")
        for kind, text in names.items()
        if any(name.startswith(kind) for name in faults)
    ]
    return table(("fault", "once", "twice"), rows)
