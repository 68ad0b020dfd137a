"""`taciturn audit`: attack a training configuration and say what an attacker really gains."""

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
    help="Attack a training: a lower bound on what leaks, with confidence. An audit can show that "
    "a claim is violated, never that something is private.",
    epilog="Example: taciturn audit two-worlds --solver gradient",
)

ATTACKED = "What is attacked"

Confidence = Annotated[float, number_option("Confidence of every lower bound.")]


@dataclass(frozen=True)
class Shown:
    """Where the result of an audit is shown: files in a folder if there is one, and stdout."""

    folder: Path | None
    is_json: bool

    def show(self, result: "Result") -> None:
        """Write and print the result; exit code 1 if the claim is violated."""
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
        typer.Option(rich_help_panel=ATTACKED, help="One of {private_solvers}. Default: als."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ATTACKED,
            help="What is claimed to be hidden: value (the default), rating or user.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        number_option(
            "Overall ε; 20 for two-worlds, 5 for one-run and attack, 1 for the paper when omitted.",
            panel=ATTACKED,
        ),
    ] = None,
    delta: Annotated[
        float | None, number_option("Overall δ; 1e-5 when omitted.", panel=ATTACKED)
    ] = None,
    model: dict[str, Any],
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="RELEASE",
            rich_help_panel=ATTACKED,
            help="Take solver, settings, ε and δ from a release, in place of the options above.",
        ),
    ] = None,
) -> "Configuration":
    """Training configuration that an audit attacks."""
    from taciturn.audit.configuration import Configuration

    return Configuration(
        solver=solver, unit=unit, epsilon=epsilon, delta=delta, options=model, like=like
    )


@with_options(reading=reading_options)
def ratings_options(
    *,
    source: Annotated[
        str | None,
        typer.Argument(
            help="Real ratings, as for taciturn train; a small worst case when omitted."
        ),
    ] = None,
    reading: "ReadingOptions",
) -> "Reader | None":
    """Reads the source when it is called; None without one."""
    return None if source is None else partial(read, source, reading)


def shown_options(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="For a page with the trade-off curve, a drawing and JSON; two-worlds keeps there "
            "what was run, so that the same command goes on.",
        ),
    ] = None,
    json: Json = False,
) -> "Shown":
    """Where the result is shown; raises if it cannot be drawn."""
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
    runs: Annotated[int, count_option("Runs in each world that count.")] = 1000,
    view: Annotated[
        str, typer.Option(help="What the attacker sees: transcript (all releases) or release.")
    ] = "transcript",
    confidence: Confidence = 0.95,
    user: Annotated[
        str | None, typer.Option(help="Whose rating differs, or who does, in real data.")
    ] = None,
    item: Annotated[str | None, typer.Option(help="Of which item.")] = None,
    to: Annotated[
        float | None,
        number_option("What it becomes; the end of the scale that is further off when omitted."),
    ] = None,
    jobs: Annotated[int | None, count_option("Processes; all processors when omitted.")] = None,
    shown: "Shown",
) -> None:
    """Run many trainings in each of two neighbouring worlds, and tell them apart.

    The noise is real. The verdict compares the whole measured trade-off of false alarms and misses
    with the claimed curve; exit code 1 says that the claim is violated.
    """
    from taciturn._internal import validate
    from taciturn.audit.configuration import choose_case
    from taciturn.audit.two_worlds import Plan, View, audit_two_worlds

    plan = Plan(runs=runs, view=validate.choice("view", view, View), confidence=confidence)
    case = choose_case(configuration, ratings, user=user, item=item, to=to)
    note(
        f"single runs are checked first; then come {2 * (plan.runs + plan.preparation):,} "
        f"trainings, {2 * plan.preparation:,} of them to fix the attack"
    )
    try:
        with iterations_bar("checks") as checks, cells_bar("trainings") as cells:
            result = audit_two_worlds(
                case, plan, folder=shown.folder, jobs=jobs, progress=cells, checking=checks
            )
    except KeyboardInterrupt:
        if shown.folder is not None:
            note("interrupted; the same command goes on")
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
    canaries: Annotated[int, count_option("Ratings that coins decide, at most.")] = 1000,
    guesses: Annotated[
        int | None,
        count_option("Coins that the attacker guesses; what suits the claim when omitted."),
    ] = None,
    confidence: Confidence = 0.95,
    threads: Threads = None,
    shown: "Shown",
) -> None:
    """Train once with many canary ratings, each flipped by a secure coin, and guess the coins.

    One training instead of thousands: for configurations that take long. The bound is looser than
    that of two worlds.
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
    epilog="Example: taciturn audit attack ml-100k --epsilon 5 --values 2:4",
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
            help="The two values that a target may have; the ends of the scale when omitted.",
        ),
    ] = None,
    targets: Annotated[int, count_option("Ratings that coins decide, at most.")] = 1000,
    shadows: Annotated[int, count_option("Pairs of trainings of the attacker's own.")] = 2,
    confidence: Confidence = 0.95,
    threads: Threads = None,
    shown: "Shown",
) -> None:
    """Show what somebody who has a release infers about single ratings.

    About their values, or under unit rating whether they are there. Hits and false alarms are shown
    beside the most that the certificate allows.
    """
    from taciturn.audit.attack import attack
    from taciturn.audit.configuration import choose_targets
    from taciturn.solvers.contract import Session

    target = choose_targets(configuration, ratings, targets, _values(values))
    with iterations_bar("trainings") as steps:
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
        raise typer.BadParameter(f"expected two numbers such as 1:5, got {text[:40]!r}") from None
    return low, high
