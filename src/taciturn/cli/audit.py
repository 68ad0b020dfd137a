"""`taciturn audit`: attacks on a training configuration, and lower bounds on its leakage."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, say, table, warn
from taciturn.cli.options import Json, Threads, count_option, number_option, with_options
from taciturn.cli.progress import cells_bar, iterations_bar
from taciturn.cli.reading import read, reading_options
from taciturn.cli.solvers import CatalogHelp, model_options

if TYPE_CHECKING:
    from taciturn.audit.configuration import Configuration, Reader
    from taciturn.audit.report import Result
    from taciturn.data.options import ReadingOptions

app = typer.Typer(
    no_args_is_help=True,
    help="Attack a training configuration and report a lower bound on its privacy loss. An audit "
    "can show that a claim is violated, but never that a release is private.",
    epilog="Example: taciturn audit two-worlds --solver als",
)

ATTACKED = "Attacked configuration"

Confidence = Annotated[float, number_option("Confidence level of each lower bound.")]


@dataclass(frozen=True)
class Shown:
    """Destination of an audit's result: stdout, and files in a folder if one is given."""

    folder: Path | None
    is_json: bool

    def show(self, result: "Result") -> None:
        """Write and print the result; exit with code 1 if the claim is violated."""
        from taciturn.audit.report import check_rows, rows, weakness, write_report
        from taciturn.audit.verdict import OWNER, Verdict

        files = write_report(self.folder, result) if self.folder is not None else []
        document = result.to_dict()
        if self.is_json:
            emit_json(document | {"files": [str(file) for file in files]})
        else:
            say(
                f"audit of {document['solver']}: {document['audit']} (owner-only, not for "
                "publication)"
            )
            say(table(rows(result)))
            if checks := check_rows(result):
                say("checks of single runs:")
                say(table(checks))
            say(f"verdict: {result.verdict.words}")
            for reason in result.reasons:
                say(f"  {reason}")
            if files:
                say(f"written to {self.folder}: {', '.join(file.name for file in files)}")
            note(OWNER)
        if weak := weakness(result):
            warn(weak)
        if result.verdict is Verdict.VIOLATED:
            raise typer.Exit(1)


@with_options(model=model_options(ATTACKED))
def configuration_options(
    *,
    solver: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ATTACKED,
            help="Solver to attack: one of {private_solvers}. Default: als.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ATTACKED,
            help="Claimed privacy unit: value, rating or user. Default: rating, or value for "
            "solvers that support no other.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        number_option(
            "Overall ε. Default: 20 for two-worlds, 5 for one-run and attack, 1 for solver paper.",
            panel=ATTACKED,
        ),
    ] = None,
    delta: Annotated[
        float | None, number_option("Overall δ. Default: 1e-5.", panel=ATTACKED)
    ] = None,
    model: dict[str, Any],
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="RELEASE",
            rich_help_panel=ATTACKED,
            help="Take the solver, its settings, ε and δ from this release instead of the options "
            "above.",
        ),
    ] = None,
) -> "Configuration":
    """Training configuration that an audit attacks."""
    from taciturn.audit.configuration import Configuration

    configuration = Configuration(
        solver=solver, unit=unit, epsilon=epsilon, delta=delta, options=model, like=like
    )
    if configuration.remark is not None:
        note(configuration.remark)
    return configuration


@with_options(reading=reading_options)
def ratings_options(
    *,
    source: Annotated[
        str | None,
        typer.Argument(
            help="Real ratings, as for taciturn train. Default: a small worst-case dataset."
        ),
    ] = None,
    reading: "ReadingOptions",
) -> "Reader | None":
    """Function that reads the source; None if no source is given."""
    return None if source is None else partial(read, source, reading)


def shown_options(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Output directory for an HTML page with the trade-off curve, a plot and JSON. "
            "The command two-worlds also caches finished runs here and resumes if rerun.",
        ),
    ] = None,
    json: Json = False,
) -> "Shown":
    """Destination of the result; raises if a plot is needed and matplotlib is missing."""
    from taciturn._internal.optional import require

    if output is not None:
        require("matplotlib.figure", extra="plots")
    return Shown(output, json)


_grouped = with_options(
    configuration=configuration_options, ratings=ratings_options, shown=shown_options
)


@app.command(
    "two-worlds", cls=CatalogHelp, epilog="Example: taciturn audit two-worlds --solver paper"
)
@_grouped
def two_worlds(
    *,
    configuration: "Configuration",
    ratings: "Reader | None",
    runs: Annotated[int, count_option("Evaluated runs on each of the two datasets.")] = 1000,
    view: Annotated[
        str,
        typer.Option(
            help="Outputs that the attacker sees: transcript (all noisy answers) or release."
        ),
    ] = "transcript",
    confidence: Confidence = 0.95,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="With real ratings: user whose rating (or, with --unit user, all ratings) differs "
            "between the datasets.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="ID", help="With real ratings: item whose rating differs."),
    ] = None,
    to: Annotated[
        float | None,
        number_option(
            "With --unit value: new value of that rating. Default: the end of the scale farther "
            "from it."
        ),
    ] = None,
    jobs: Annotated[
        int | None, count_option("Number of processes. Default: one for each processor.")
    ] = None,
    shown: "Shown",
) -> None:
    """Train many times on each of two neighbouring datasets and try to tell them apart.

    The noise is real. The verdict compares the whole measured trade-off between false positives and
    false negatives with the claimed curve. Exit code 1 means that the claim is violated.
    """
    from taciturn._internal import validate
    from taciturn.audit.configuration import choose_case
    from taciturn.audit.two_worlds import Plan, View, audit_two_worlds

    plan = Plan(runs=runs, view=validate.choice("view", view, View), confidence=confidence)
    case = choose_case(configuration, ratings, user=user, item=item, to=to)
    note(
        f"checking single runs first, then training {2 * (plan.runs + plan.preparation):,} times "
        f"({2 * plan.preparation:,} of them to choose the attack)"
    )
    try:
        with iterations_bar("checks") as checks, cells_bar("runs") as cells:
            result = audit_two_worlds(
                case, plan, folder=shown.folder, jobs=jobs, progress=cells, checking=checks
            )
    except KeyboardInterrupt:
        if shown.folder is not None:
            note("interrupted; rerun the command to resume")
        raise
    shown.show(result)


@app.command(
    "one-run",
    cls=CatalogHelp,
    epilog="Example: taciturn audit one-run --solver gradient --canaries 1000",
)
@_grouped
def one_run(
    *,
    configuration: "Configuration",
    ratings: "Reader | None",
    canaries: Annotated[int, count_option("Maximum number of canary ratings.")] = 1000,
    guesses: Annotated[
        int | None,
        count_option("Number of coins that the attacker guesses. Default: chosen from ε and δ."),
    ] = None,
    confidence: Confidence = 0.95,
    threads: Threads = None,
    shown: "Shown",
) -> None:
    """Train once with many canary ratings, each set by a secure coin flip, and guess the coins.

    For configurations that take long to train, because two-worlds trains thousands of times. The
    bound is looser than with two-worlds.
    """
    from taciturn.audit.configuration import choose_targets
    from taciturn.audit.one_run import audit_one_run
    from taciturn.solvers.contract import Session

    target = choose_targets(configuration, ratings, canaries)
    with iterations_bar("one run") as steps:
        session = Session(threads=threads, progress=steps)
        result = audit_one_run(*target, guesses=guesses, confidence=confidence, session=session)
    shown.show(result)


@app.command(
    "attack",
    cls=CatalogHelp,
    epilog="Example: taciturn audit attack ml-100k --epsilon 2 --targets 500",
)
@_grouped
def attack_release(
    *,
    configuration: "Configuration",
    ratings: "Reader | None",
    values: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="With --unit value: the two possible values of a target rating. Default: the ends "
            "of the scale.",
        ),
    ] = None,
    targets: Annotated[int, count_option("Maximum number of target ratings.")] = 1000,
    shadows: Annotated[
        int, count_option("Number of pairs of shadow models that the attacker trains.")
    ] = 2,
    confidence: Confidence = 0.95,
    threads: Threads = None,
    shown: "Shown",
) -> None:
    """Measure how well an attacker with a release infers single ratings.

    The attacker guesses values or, under unit rating, whether a rating exists. True-positive and
    false-positive rates are shown next to the bound that the certificate implies.
    """
    from taciturn.audit.attack import attack
    from taciturn.audit.configuration import choose_targets
    from taciturn.solvers.contract import Session

    target = choose_targets(configuration, ratings, targets, _values(values))
    with iterations_bar("training") as steps:
        session = Session(threads=threads)
        result = attack(
            *target, shadows=shadows, confidence=confidence, session=session, progress=steps
        )
    shown.show(result)


def _values(text: str | None) -> tuple[float | None, float | None]:
    if text is None:
        return None, None
    try:
        low, high = (float(each) for each in text.split(":"))
    except ValueError:
        raise typer.BadParameter(
            f"--values needs two numbers such as 1:5, got {text[:40]!r}"
        ) from None
    return low, high
