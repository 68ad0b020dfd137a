"""`taciturn audit`: attack a training configuration and say what an attacker really gains."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import (
    Json,
    count_option,
    emit_json,
    note,
    number_option,
    say,
    table,
    warn,
)
from taciturn.cli.data import (
    ColumnsOption,
    DuplicatesOption,
    ItemIdTypeOption,
    MissingOption,
    NoHeaderOption,
    OutsideOption,
    ScaleOption,
    SeparatorOption,
    read,
)
from taciturn.cli.progress import cells_bar, iterations_bar

if TYPE_CHECKING:
    from taciturn.accounting.budget import Budget
    from taciturn.audit.one_run import Canaries
    from taciturn.audit.report import Result
    from taciturn.solvers.contract import Solver

app = typer.Typer(
    no_args_is_help=True,
    help="Attack a training: a lower bound on what leaks, with confidence. An audit can show that "
    "a claim is violated, never that something is private.",
    epilog="Example: taciturn audit two-worlds --solver gradient",
)

CONFIGURATION = "What is attacked"

CANARIES_MAX = 100_000
"""Most canaries that are made up without data."""

SourceOption = Annotated[
    str | None,
    typer.Argument(help="Real ratings, as for taciturn train; a small worst case when omitted."),
]
SolverOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=CONFIGURATION,
        help="als (the default), gradient, bias, input-perturbation or paper.",
    ),
]


UnitOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=CONFIGURATION,
        help="What is claimed to be hidden: value (the default), rating or user.",
    ),
]
EpsilonOption = Annotated[
    float | None,
    number_option(
        "Overall ε; 20 for two-worlds, 5 for one-run and attack, 1 for the paper when omitted.",
        panel=CONFIGURATION,
    ),
]
DeltaOption = Annotated[
    float | None, number_option("Overall δ; 1e-5 when omitted.", panel=CONFIGURATION)
]
FactorsOption = Annotated[int | None, count_option("Factors of a profile.", panel=CONFIGURATION)]
IterationsOption = Annotated[int | None, count_option("Steps or rounds.", panel=CONFIGURATION)]
StepOption = Annotated[float | None, number_option("Size of a step.", panel=CONFIGURATION)]
RegularizationOption = Annotated[
    float | None, number_option("Strength of the regularization.", panel=CONFIGURATION)
]
MaskOption = Annotated[
    bool,
    typer.Option(
        "--no-mask-features",
        rich_help_panel=CONFIGURATION,
        help="Solver als: use no features of who rated what.",
    ),
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="RELEASE",
        rich_help_panel=CONFIGURATION,
        help="Take solver, settings, ε and δ from a release, in place of the options above.",
    ),
]
ConfidenceOption = Annotated[float, number_option("Confidence of every lower bound.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="For a page with the trade-off curve, a drawing and JSON.",
    ),
]


@app.command("two-worlds", epilog="Example: taciturn audit two-worlds --solver paper")
def two_worlds(
    source: SourceOption = None,
    solver: SolverOption = None,
    unit: UnitOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    factors: FactorsOption = None,
    iterations: IterationsOption = None,
    step_size: StepOption = None,
    regularization: RegularizationOption = None,
    no_mask_features: MaskOption = False,
    like: LikeOption = None,
    runs: Annotated[int, count_option("Runs in each world that count.")] = 1000,
    view: Annotated[
        str, typer.Option(help="What the attacker sees: transcript (all releases) or release.")
    ] = "transcript",
    confidence: ConfidenceOption = 0.95,
    user: Annotated[
        str | None, typer.Option(help="Whose rating differs, or who does, in real data.")
    ] = None,
    item: Annotated[str | None, typer.Option(help="Of which item.")] = None,
    to: Annotated[
        float | None,
        number_option("What it becomes; the end of the scale that is further off when omitted."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="For page, drawing and JSON; keeps what was run, so that the same command goes "
            "on.",
        ),
    ] = None,
    jobs: Annotated[int | None, count_option("Processes; all processors when omitted.")] = None,
    scale: ScaleOption = None,
    columns: ColumnsOption = None,
    separator: SeparatorOption = None,
    duplicates: DuplicatesOption = "error",
    missing: MissingOption = "error",
    outside: OutsideOption = "error",
    item_id_type: ItemIdTypeOption = None,
    no_header: NoHeaderOption = False,
    json: Json = False,
) -> None:
    """Run many trainings in each of two neighbouring worlds, and tell them apart.

    The noise is real. The verdict compares the whole measured trade-off of false alarms and misses
    with the claimed curve; exit code 1 says that the claim is violated.
    """
    from taciturn._internal import validate
    from taciturn.audit.two_worlds import Plan, View, audit_two_worlds
    from taciturn.audit.worlds import EPSILON, Case, chosen_pair, worst_pair
    from taciturn.errors import InvalidParameter
    from taciturn.solvers.contract import unit_of

    plan = Plan(runs=runs, view=validate.choice("view", view, View), confidence=confidence)
    chosen, budget = _configuration(
        solver,
        unit,
        epsilon,
        delta,
        like,
        usual=EPSILON,
        is_small=source is None,
        factors=factors,
        iterations=iterations,
        step_size=step_size,
        regularization=regularization,
        mask_features=False if no_mask_features else None,
    )
    _check_output(output)
    if source is not None:
        how = scale, columns, separator, duplicates, missing, outside, item_id_type, no_header
        ratings = read(source, *how)
        pair = chosen_pair(ratings, unit_of(chosen), user=user, item=item, to=to)
    elif user is not None or item is not None or to is not None:
        raise InvalidParameter("--user, --item and --to choose a rating of real data: give some")
    else:
        pair = worst_pair(chosen)
    case = Case(solver=chosen, budget=budget, pair=pair)
    note(
        f"single runs are checked first; then come {2 * (plan.runs + plan.preparation):,} "
        f"trainings, {2 * plan.preparation:,} of them to fix the attack"
    )
    try:
        with iterations_bar("checks") as checks, cells_bar("trainings") as cells:
            result = audit_two_worlds(
                case, plan, folder=output, jobs=jobs, progress=cells, checking=checks
            )
    except KeyboardInterrupt:
        if output is not None:
            note("interrupted; the same command goes on")
        raise
    _show(result, output, json)


@app.command("one-run", epilog="Example: taciturn audit one-run --solver gradient --canaries 1000")
def one_run(
    source: SourceOption = None,
    solver: SolverOption = None,
    unit: UnitOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    factors: FactorsOption = None,
    iterations: IterationsOption = None,
    step_size: StepOption = None,
    regularization: RegularizationOption = None,
    no_mask_features: MaskOption = False,
    like: LikeOption = None,
    canaries: Annotated[int, count_option("Ratings that coins decide, at most.")] = 1000,
    guesses: Annotated[
        int | None,
        count_option("Coins that the attacker guesses; what suits the claim when omitted."),
    ] = None,
    confidence: ConfidenceOption = 0.95,
    output: OutputOption = None,
    threads: Annotated[int | None, count_option("Threads; all processors when omitted.")] = None,
    scale: ScaleOption = None,
    columns: ColumnsOption = None,
    separator: SeparatorOption = None,
    duplicates: DuplicatesOption = "error",
    missing: MissingOption = "error",
    outside: OutsideOption = "error",
    item_id_type: ItemIdTypeOption = None,
    no_header: NoHeaderOption = False,
    json: Json = False,
) -> None:
    """Train once with many canary ratings, each flipped by a secure coin, and guess the coins.

    One training instead of thousands: for configurations that take long. The bound is looser than
    that of two worlds.
    """
    from taciturn.audit.one_run import EPSILON, audit_one_run
    from taciturn.solvers.contract import Session

    chosen, budget = _configuration(
        solver,
        unit,
        epsilon,
        delta,
        like,
        usual=EPSILON,
        is_small=False,
        factors=factors,
        iterations=iterations,
        step_size=step_size,
        regularization=regularization,
        mask_features=False if no_mask_features else None,
    )
    _check_output(output)
    how = scale, columns, separator, duplicates, missing, outside, item_id_type, no_header
    chosen_canaries = _canaries(source, canaries, chosen, (None, None), *how)
    with iterations_bar("one run") as steps:
        result = audit_one_run(
            chosen,
            budget,
            chosen_canaries,
            guesses=guesses,
            confidence=confidence,
            session=Session(threads=threads, progress=steps),
        )
    _show(result, output, json)


@app.command("attack", epilog="Example: taciturn audit attack ml-100k --epsilon 5 --values 2:4")
def attack_release(
    source: SourceOption = None,
    solver: SolverOption = None,
    unit: UnitOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    factors: FactorsOption = None,
    iterations: IterationsOption = None,
    step_size: StepOption = None,
    regularization: RegularizationOption = None,
    no_mask_features: MaskOption = False,
    like: LikeOption = None,
    values: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="The two values that a target may have; the ends of the scale when omitted.",
        ),
    ] = None,
    targets: Annotated[int, count_option("Ratings that coins decide, at most.")] = 1000,
    shadows: Annotated[int, count_option("Pairs of trainings of the attacker's own.")] = 2,
    confidence: ConfidenceOption = 0.95,
    output: OutputOption = None,
    threads: Annotated[int | None, count_option("Threads; all processors when omitted.")] = None,
    scale: ScaleOption = None,
    columns: ColumnsOption = None,
    separator: SeparatorOption = None,
    duplicates: DuplicatesOption = "error",
    missing: MissingOption = "error",
    outside: OutsideOption = "error",
    item_id_type: ItemIdTypeOption = None,
    no_header: NoHeaderOption = False,
    json: Json = False,
) -> None:
    """Show what somebody who has a release infers about single ratings.

    About their values, or under unit rating whether they are there. Hits and false alarms are shown
    beside the most that the certificate allows.
    """
    from taciturn.audit.attack import attack
    from taciturn.audit.one_run import EPSILON
    from taciturn.solvers.contract import Session

    chosen, budget = _configuration(
        solver,
        unit,
        epsilon,
        delta,
        like,
        usual=EPSILON,
        is_small=False,
        factors=factors,
        iterations=iterations,
        step_size=step_size,
        regularization=regularization,
        mask_features=False if no_mask_features else None,
    )
    _check_output(output)
    how = scale, columns, separator, duplicates, missing, outside, item_id_type, no_header
    chosen_targets = _canaries(source, targets, chosen, _values(values), *how)
    with iterations_bar("trainings") as steps:
        result = attack(
            chosen,
            budget,
            chosen_targets,
            shadows=shadows,
            confidence=confidence,
            session=Session(threads=threads),
            progress=steps,
        )
    _show(result, output, json)


def _configuration(
    solver: str | None,
    unit: str | None,
    epsilon: float | None,
    delta: float | None,
    like: Path | None,
    *,
    usual: float,
    is_small: bool,
    **options: Any,
) -> "tuple[Solver, Budget | None]":
    """Return the solver and the budget that options ask for, or those of a release."""
    from taciturn.accounting.budget import Budget
    from taciturn.audit.verdict import DELTA
    from taciturn.audit.worlds import PAPER_EPSILON, audited_solver
    from taciturn.errors import InvalidParameter
    from taciturn.release.read import load_release
    from taciturn.solvers.catalog import unit_option

    if like is None:
        name = solver or "als"
        options |= unit_option(name, unit or "value")
        chosen = audited_solver(name, is_small=is_small, **options)
        usual = PAPER_EPSILON if name == "paper" else usual
        return chosen, Budget.from_epsilon(
            usual if epsilon is None else epsilon, DELTA if delta is None else delta
        )
    given = [solver, unit, epsilon, delta, *options.values()]
    if any(each is not None for each in given):
        raise InvalidParameter("--like takes everything from a release; leave other options out")
    release = load_release(like)
    certificate = release.certificate
    chosen = audited_solver(release.facts.solver, is_small=False, **release.facts.settings)
    if certificate.epsilon is None:
        raise InvalidParameter(f"{like} claims nothing: there is no claim to audit")
    if getattr(chosen, "epsilon_i", None) is not None:
        return chosen, None  # the paper's own parameters say how much noise there is
    return chosen, Budget.from_epsilon(certificate.epsilon, certificate.delta)


def _canaries(
    source: str | None,
    most: int,
    solver: "Solver",
    values: "tuple[float | None, float | None]",
    *how: Any,
) -> "Canaries":
    """Return canaries among real ratings, or among some that are made for them."""
    from taciturn.audit.one_run import choose_canaries, own_canaries
    from taciturn.errors import InvalidParameter
    from taciturn.solvers.contract import unit_of

    (low, high), unit = values, unit_of(solver)
    if source is not None:
        return choose_canaries(read(source, *how), most, unit, low=low, high=high)
    if not 0 < most <= CANARIES_MAX:
        raise InvalidParameter(f"without data there can be 10 to {CANARIES_MAX:,} canaries")
    return own_canaries(most, unit, low=low, high=high)


def _values(text: str | None) -> tuple[float | None, float | None]:
    if text is None:
        return None, None
    try:
        low, high = (float(each) for each in text.split(":"))
    except ValueError:
        raise typer.BadParameter(f"expected two numbers such as 1:5, got {text[:40]!r}") from None
    return low, high


def _check_output(output: Path | None) -> None:
    from taciturn._internal.optional import require

    if output is not None:
        require("matplotlib.figure", extra="plots")


def _show(result: "Result", output: Path | None, json: bool) -> None:
    from taciturn.audit.report import check_rows, rows, weakness, write_report
    from taciturn.audit.verdict import OWNER, Verdict

    files = write_report(output, result) if output is not None else []
    document = result.to_dict()
    if json:
        emit_json(document | {"files": [str(file) for file in files]})
    else:
        say(f"audit of {document['solver']}: {document['audit']} (owner-only, not for publication)")
        say(table(rows(result)))
        if checks := check_rows(result):
            say("checks of single runs:")
            say(table(checks))
        say(f"verdict: {result.verdict.words}")
        for reason in result.reasons:
            say(f"  {reason}")
        if files:
            say(f"written to {output}: {', '.join(file.name for file in files)}")
        note(OWNER)
    if weak := weakness(result):
        warn(weak)
    if result.verdict is Verdict.VIOLATED:
        raise typer.Exit(1)
