"""`taciturn paper`: reproduction of the paper's experiments, and the gap in its proof."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, say, table
from taciturn.cli.options import Json, count_option, number_option, with_options
from taciturn.cli.progress import cells_bar, iterations_bar

if TYPE_CHECKING:
    from taciturn.reproduction.figures import Settings
    from taciturn.reproduction.reproduce import Reproduced

app = typer.Typer(
    no_args_is_help=True,
    help="Reproduce the figures of the paper that Taciturn builds on, and show where its proof "
    "fails.",
)

Figures = Annotated[
    list[str],
    typer.Argument(
        metavar="N…|all", help="Figure numbers, such as 4 or 1-3, or all for figures 1 to 27."
    ),
]
Output = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="DIR", help="Output directory; created if missing."),
]
Protocol = Annotated[
    str,
    typer.Option(
        help="as-run: the experiments as they were run, inferred from the figures; as-printed: "
        "Algorithm 1 as printed in the paper."
    ),
]
Jobs = Annotated[
    int | None, count_option("Number of runs in parallel. Default: one for each processor.")
]


def settings_options(
    protocol: Protocol = "as-run",
    stop: Annotated[
        str,
        typer.Option(
            help="When runs stop. paper: after the paper's number of iterations; rule: by a "
            "stopping rule, the one whose numbers of iterations are closest to the paper's."
        ),
    ] = "paper",
    seeds: Annotated[
        int, count_option("Runs for each point, with consecutive seeds; their mean is plotted.")
    ] = 1,
    first_seed: Annotated[
        int | None,
        count_option(
            "First public seed of the initial profiles. Default: 0; figures 1 and 4 use seeds for "
            "which the error starts to fall at the same iteration as in the paper."
        ),
    ] = None,
    max_factors: Annotated[
        int | None,
        count_option(
            "Maximum number of factors k, at least 4. Default: 60, or no maximum where only times "
            "are measured."
        ),
    ] = None,
) -> "Settings":
    """Settings of the reproduced figures."""
    from taciturn.reproduction.figures import Settings

    return Settings(
        protocol=protocol,  # type: ignore[arg-type]
        stop=stop,  # type: ignore[arg-type]
        seeds=seeds,
        first_seed=first_seed,
        max_factors=max_factors,
    )


@app.command(epilog="Example: taciturn paper figure 4 -o figures")
@with_options(settings=settings_options)
def figure(
    numbers: Figures,
    output: Output,
    settings: "Settings",
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Reproduce figures of the paper and plot the results beside the paper's own points.

    Figures 1, 4, …, 25 use MovieLens-1M. Figures 2, 5, …, 26 use a slice of the Netflix Prize
    data. Figures 3, 6, …, 27 use the anime dataset. Figures 10-12 and 22-24 need no training, and
    figures 16-18 measure times. On two processors, figure 4 takes two or three minutes and all
    figures take a few hours.

    Finished runs are cached (TACITURN_CACHE): rerun an interrupted command to resume, and figures
    share their runs. Errors are exact and come from public datasets.
    """
    results = _run(_numbers(numbers), output, settings, jobs)
    if json:
        emit_json({"view": "owner", "figures": [_summary(result) for result in results]})
        return
    say(table([row for result in results for row in _rows(result)]))
    say(f"written to {output}")


@app.command(epilog="Example: taciturn paper report -o figures")
@with_options(settings=settings_options)
def report(
    output: Output,
    numbers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[N…|all]",
            help="Figures to reproduce first. Default: none; the page shows the figures in DIR.",
        ),
    ] = None,
    *,
    settings: "Settings",
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Write report.html: all figures in DIR, their differences from the paper, and conclusions.

    The page includes the results of taciturn paper leak, if they are in DIR. If figure numbers are
    given, these figures are reproduced first, with the options of taciturn paper figure.
    """
    from taciturn.reproduction.report import write_report
    from taciturn.reproduction.reproduce import read_reproduced

    if numbers:
        _run(_numbers(numbers), output, settings, jobs)
    results = read_reproduced(output)
    path = write_report(output, results)
    if json:
        emit_json({"report": str(path), "figures": [each.figure.number for each in results]})
        return
    say(f"{len(results)} figures in {path}")


@app.command(epilog="Example: taciturn paper leak --transcripts 32 -o figures")
def leak(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="Name of a dataset; see taciturn data list.")
    ] = "ml-1m",
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Item whose rating changes. May be repeated. Default: the most-rated item and two "
            "of medium popularity.",
        ),
    ] = None,
    transcripts: Annotated[
        int, count_option("Simulated transcripts from each of the two datasets.")
    ] = 32,
    epsilon_i: Annotated[float, number_option("ε of one iteration.")] = 0.4,
    iterations: Annotated[int, count_option("Number of iterations J.")] = 300,
    protocol: Protocol = "as-printed",
    jobs: Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for leak.png, .svg and .json. Default: write no files.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show that the paper's privacy theorem is false: the claimed privacy loss and the true one.

    The first part is an exact counterexample with four users; its attacker sees the final profiles
    only. The second part changes one real rating and simulates runs on both neighbouring datasets.
    Its attacker knows the initial profiles and sees the user profiles after every iteration; the
    theorem's proof covers such an attacker. For comparison, the second part also attacks the solver
    gradient. Takes a few minutes.
    """
    from taciturn._internal.files import prepare_folder
    from taciturn._internal.optional import require
    from taciturn.reproduction.leak import LeakSettings, measure_leak

    settings = LeakSettings(
        dataset=dataset,
        items=tuple(item or ()),
        transcripts=transcripts,
        epsilon_i=epsilon_i,
        iterations=iterations,
        protocol=protocol,  # type: ignore[arg-type]
    )
    if output is not None:
        require("matplotlib.figure", extra="plots")
        prepare_folder(output)
    with iterations_bar("transcripts") as progress:
        found = measure_leak(settings, jobs=jobs, progress=progress)
    document = found.to_dict()
    if output is not None:
        from taciturn.reproduction.draw_leak import write_leak

        write_leak(output, found)
    if json:
        emit_json({"view": "owner"} | document)
        return
    _say_leak(document)


def _say_leak(leak: dict[str, Any]) -> None:
    case = leak["counterexample"]
    say("Four users, one item, two iterations, the final profiles alone (exact):")
    for each in case["cases"]:
        say(
            f"  claimed epsilon {each['claimed_epsilon']:.4f}, true {each['true_epsilon']:.4f}, "
            f"at delta = {each['delta']:g}"
        )
    say()
    say(
        f"{leak['dataset']}, {leak['iterations']} iterations at epsilon_i = "
        f"{leak['epsilon_i']:g} ({leak['protocol']}), {leak['transcripts']} transcripts from each "
        "of two neighbouring datasets."
    )
    say(
        f"The theorem's proof gives delta = {leak['claimed_delta']:g} at epsilon = "
        f"{leak['claimed_epsilon']:.4f} against an attacker who knows the initial profiles and "
        "sees the user profiles after every iteration. Measured delta at that epsilon:"
    )
    rows = [
        (
            f"item {each['item_id']}",
            f"{each['delta_at_claim']:.4f}" if each["delta_at_claim"] else "no violation seen",
            (
                f"at least {each['delta_at_claim_lower']:.4f} with {leak['confidence']:.0%} "
                "confidence; "
                if each["delta_at_claim"]
                else "a large one would be detected; "
            )
            + f"{each['raters']:,} raters, one rating {each['before']:g} to {each['after']:g}, √Q "
            f"{each['sqrt_q']['least']:.4f} to {each['sqrt_q']['largest']:.4f}, claimed at most "
            f"{leak['claimed_mu']:.4f}",
        )
        for each in leak["items"]
    ]
    say(table(rows))
    sound = leak["gradient"]
    say()
    verdict = "ABOVE the recorded" if sound["exceeds"] else "never above the recorded"
    say(
        "√Q measures how far apart the two datasets are along one transcript; where every step is "
        "bounded, it never exceeds mu. For gradient, with noise on both axes and the exact mu of "
        f"epsilon = {sound['epsilon']:.4f}, it is at most {sound['sqrt_q_largest']:.4f} in "
        f"{sound['transcripts']} transcripts, {verdict} mu = {sound['mu']:.4f}."
    )


def _run(
    numbers: list[int], output: Path, settings: "Settings", jobs: int | None
) -> "list[Reproduced]":
    from taciturn.reproduction.reproduce import reproduce

    def written(result: "Reproduced") -> None:
        if not sys.stderr.isatty():  # a terminal shows a progress bar instead
            note(f"figure {result.figure.number} is written")

    try:
        with cells_bar("runs") as cells, iterations_bar("times") as times:
            return reproduce(
                numbers,
                output,
                settings,
                jobs=jobs,
                progress=cells,
                timing=times,
                written=written,
            )
    except KeyboardInterrupt:
        note("interrupted; finished runs are cached, rerun the command to resume")
        raise


def _numbers(arguments: list[str]) -> list[int]:
    """Figure numbers from arguments that are numbers, ranges such as 1-3, or all."""
    numbers: set[int] = set()
    for argument in ",".join(arguments).split(","):
        if argument == "all":
            numbers |= set(range(1, 28))
            continue
        found = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", argument)
        if found is None:
            raise typer.BadParameter(
                f"expected figure numbers such as 4 or 1-3, or all, got {argument[:40]!r}"
            )
        first, last = found[1], found[2] or found[1]
        chosen = range(int(first), int(last) + 1)
        if not chosen:
            raise typer.BadParameter(
                f"a range such as 1-3 starts with the smaller number, got {argument!r}"
            )
        if chosen[0] < 1 or chosen[-1] > 27:
            raise typer.BadParameter(f"the paper has figures 1 to 27, got {argument[:40]!r}")
        numbers |= set(chosen)
    return sorted(numbers)


def _summary(result: "Reproduced") -> dict[str, object]:
    from taciturn.reproduction.published import Quantity

    worst = {
        quantity.value: max(map(abs, differences))
        for quantity in Quantity
        if (differences := result.differences(quantity))
    }
    return {
        "figure": result.figure.number,
        "files": [str(result.path(ending)) for ending in ("png", "svg", "json")],
        "points": len(result.points),
        "largest_deviation": worst,
    }


def _rows(result: "Reproduced") -> list[tuple[str, str, str]]:
    from taciturn.reproduction.published import Quantity

    name = f"figure {result.figure.number}"
    rows = [(name, "", f"not compared: {result.obstacle}")] if result.obstacle else []
    for quantity, form, remark in (
        (Quantity.RMSE, "{:.4f}", "largest difference of training errors from the paper's"),
        (
            Quantity.EPSILON_PAPER,
            "{:.3f}",
            "largest difference of the overall ε, a check of the formulas",
        ),
        (Quantity.MS, "{:.2f}", "largest difference of milliseconds from the paper's P100"),
    ):
        differences = result.differences(quantity)
        if differences:
            rows.append((name, form.format(max(map(abs, differences))), remark))
    return rows
