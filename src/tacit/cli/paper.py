"""`tacit paper`: the paper's experiments again, and the gap in its proof."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import Json, count_option, emit_json, say, table
from tacit.cli.progress import cells_bar, iterations_bar

if TYPE_CHECKING:
    from tacit.paper.figures import Settings
    from tacit.paper.reproduce import Reproduced

app = typer.Typer(
    no_args_is_help=True,
    help="Reproduce the figures of the paper that Tacit starts from, and see where its proof "
    "fails.",
)

Figures = Annotated[
    list[str],
    typer.Argument(metavar="N…|all", help="Figures by number, such as 4 or 1-3; or all 27."),
]
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write; made if absent.")
]
Protocol = Annotated[
    str,
    typer.Option(
        help="as-run: as the experiments were, recovered from the figures; as-printed: Algorithm 1 "
        "as the paper has it."
    ),
]
Stop = Annotated[
    str,
    typer.Option(
        help="When runs end: at the paper's own number of iterations, or by the stopping rule that "
        "comes closest to it: paper, rule."
    ),
]
Seeds = Annotated[int, count_option("Runs of each point, with consecutive seeds; means are drawn.")]
FirstSeed = Annotated[
    int | None,
    count_option(
        "First public seed, of start and split; when omitted 0, or in figures 1 and 4 starts that "
        "begin to fall when the paper's do."
    ),
]
MaxFactors = Annotated[
    int | None,
    count_option("Longest profiles k; 60 when omitted, no limit where only times are measured."),
]
Jobs = Annotated[
    int | None, count_option("Trainings at a time; one for each processor when omitted.")
]


@app.command(epilog="Example: tacit paper figure 4 -o figures")
def figure(
    numbers: Figures,
    output: Output,
    protocol: Protocol = "as-run",
    stop: Stop = "paper",
    seeds: Seeds = 1,
    first_seed: FirstSeed = None,
    max_factors: MaxFactors = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Run the experiments of figures again and draw them with the paper's own points.

    What was run is kept in the cache (TACIT_CACHE): an interrupted command goes on where it was,
    and figures share their runs. Errors are exact, on public sets.
    """
    from tacit.paper.figures import Settings

    settings = Settings(
        protocol=protocol,  # type: ignore[arg-type]
        stop=stop,  # type: ignore[arg-type]
        seeds=seeds,
        first_seed=first_seed,
        max_factors=max_factors,
    )
    results = _run(_numbers(numbers), output, settings, jobs)
    if json:
        emit_json({"figures": [_summary(result) for result in results]})
        return
    say(table([row for result in results for row in _rows(result)]))
    say(f"written to {output}")


def _run(
    numbers: list[int], output: Path, settings: "Settings", jobs: int | None
) -> "list[Reproduced]":
    from tacit.paper.reproduce import reproduce

    with cells_bar("trainings") as cells, iterations_bar("times") as times:
        return reproduce(numbers, output, settings, jobs=jobs, progress=cells, timing=times)


def _numbers(arguments: list[str]) -> list[int]:
    """Return the figures that are meant by numbers, ranges such as 1-3, or all."""
    numbers: set[int] = set()
    for argument in arguments:
        if argument == "all":
            numbers |= set(range(1, 28))
            continue
        first, _, last = argument.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise typer.BadParameter(
                f"expected numbers of figures such as 4 or 1-3, or all, got {argument[:40]!r}"
            )
        chosen = range(int(first), int(last or first) + 1)
        if not chosen or chosen[0] < 1 or chosen[-1] > 27:
            raise typer.BadParameter(f"the paper has figures 1 to 27, got {argument[:40]!r}")
        numbers |= set(chosen)
    return sorted(numbers)


def _summary(result: "Reproduced") -> dict[str, object]:
    from tacit.paper.published import Quantity

    worst = {
        quantity.value: max(map(abs, deviations))
        for quantity in Quantity
        if (deviations := result.deviations(quantity))
    }
    return {
        "figure": result.figure.number,
        "files": [str(result.path(ending)) for ending in ("png", "svg", "json")],
        "points": len(result.points),
        "largest_deviation": worst,
    }


def _rows(result: "Reproduced") -> list[tuple[str, str, str]]:
    from tacit.paper.published import Quantity

    name = f"figure {result.figure.number}"
    rows = []
    for quantity, form in (
        (Quantity.RMSE, "{:.4f}"),
        (Quantity.EPSILON_PAPER, "{:.3f}"),
        (Quantity.MS, "{:.2f}"),
    ):
        deviations = result.deviations(quantity)
        if deviations:
            largest = max(map(abs, deviations))
            rows.append((name, form.format(largest), f"largest deviation, {quantity}"))
    return rows or [(name, "", "not comparable with the paper's points")]
