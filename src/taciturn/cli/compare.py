"""`taciturn compare`: accuracy against privacy, solvers side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import emit_json, note, say
from taciturn.cli.options import Delta, Json, Threads, count_option, number_option, with_options
from taciturn.cli.progress import cells_bar
from taciturn.cli.reading import Source, read, reading_options

if TYPE_CHECKING:
    from taciturn.data.options import ReadingOptions


@with_options(reading=reading_options)
def compare(
    source: Source,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="For table, plot and page; keeps what was run, so that the same command goes on.",
        ),
    ],
    epsilons: Annotated[
        str, typer.Option(metavar="E,E,…", help="Overall budgets, exact for every solver.")
    ] = "1,5,10",
    solvers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="The first is what the others are compared with; see train. Default: "
            "{compared_solvers}.",
        ),
    ] = None,
    units: Annotated[
        str,
        typer.Option(
            metavar="UNIT,…",
            help="What to hide: value, rating, user. als and bias know all of them.",
        ),
    ] = "value",
    seeds: Annotated[
        int, count_option("Random splits; a seed fixes split and start, noise is drawn anew.")
    ] = 3,
    first_seed: Annotated[int, count_option("The first seed.")] = 0,
    delta: Delta = 1e-5,
    holdout: Annotated[float, number_option("Part of the ratings that is left out.")] = 0.1,
    *,
    reading: "ReadingOptions",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Train several solvers at several budgets and compare their errors on held-out ratings.

    All are compared on the same splits. The errors are exact and read private data: they are the
    owner's own view, and choosing by them is not covered by any guarantee.
    """
    from taciturn._internal import validate
    from taciturn._internal.optional import require
    from taciturn.accounting.units import Unit
    from taciturn.evaluate.compare import DEFAULT, Plan, run_comparison
    from taciturn.evaluate.compare_report import OWNER, rows, write_comparison

    plan = Plan(
        solvers=DEFAULT if solvers is None else tuple(name.strip() for name in solvers.split(",")),
        units=tuple(validate.choice("units", each.strip(), Unit) for each in units.split(",")),
        epsilons=_numbers(epsilons),
        delta=delta,
        seeds=seeds,
        first_seed=first_seed,
        holdout=holdout,
    )
    require("matplotlib.figure", extra="plots")
    left_out = [name for name in plan.solvers if name not in dict(plan.kinds)]
    if left_out:
        note(f"left out, since they know unit value only: {', '.join(left_out)}")
    ratings = read(source, reading)
    try:
        with cells_bar("trainings") as cells:
            comparison = run_comparison(
                ratings, plan, source=source, folder=output, threads=threads, progress=cells
            )
    except KeyboardInterrupt:
        note("interrupted; the same command goes on")
        raise
    files = write_comparison(output, comparison)
    if json:
        emit_json(comparison.to_dict() | {"files": [str(file) for file in files]})
        return
    lines = rows(comparison)
    widths = [max(len(row[place]) for row in lines) for place in range(len(lines[0]))]
    for row in lines:
        cells_of_row = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells_of_row).rstrip())
    say(f"written to {output}: {', '.join(file.name for file in files)}")
    note(OWNER)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"expected numbers with commas between them, got {text[:40]!r}"
        ) from None
