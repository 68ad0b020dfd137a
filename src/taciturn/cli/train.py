"""`taciturn train`: ratings in, a release with its certificate out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    Source,
    read,
)
from taciturn.cli.progress import duration, iterations_bar

if TYPE_CHECKING:
    from taciturn.accounting.budget import Budget
    from taciturn.accounting.units import Unit
    from taciturn.solvers.contract import Solver
    from taciturn.training.preview import Preview
    from taciturn.training.train import Trained

UnitOption = Annotated[
    str,
    typer.Option(
        help="What is hidden: value (how somebody rated), rating (that they rated at all) or user "
        "(the person; items only are released)."
    ),
]
Number = float | None
Count = int | None

ALS, PAPER = "Options of --solver als", "Options of --solver paper"


def train(
    source: Source,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The release to write; it must not exist."
        ),
    ] = None,
    epsilon: Annotated[
        Number, number_option("Overall ε: the budget of the whole training.")
    ] = None,
    delta: Annotated[
        float, number_option("Overall δ: choose it well below one over the number of people.")
    ] = 1e-5,
    unit: UnitOption = "value",
    solver: Annotated[
        str,
        typer.Option(
            help="als, bias (proven, any unit); gradient, input-perturbation (proven); paper "
            "(claimed); non-private, non-private-gradient, non-private-bias (no guarantee)."
        ),
    ] = "als",
    factors: Annotated[
        Count, count_option("Factors of a profile; als chooses from public or released counts.")
    ] = None,
    iterations: Annotated[Count, count_option("Steps or rounds, fixed in advance.")] = None,
    step_size: Annotated[Number, number_option("Size of a step.")] = None,
    regularization: Annotated[Number, number_option("Strength of the regularization.")] = None,
    holdout: Annotated[
        Number,
        number_option("Leave out this part of the ratings and show the error on it: owner's view."),
    ] = None,
    seed: Annotated[
        int, count_option("Public seed of the split and the start; never touches noise.")
    ] = 0,
    scale: ScaleOption = None,
    columns: ColumnsOption = None,
    separator: SeparatorOption = None,
    duplicates: DuplicatesOption = "error",
    missing: MissingOption = "error",
    outside: OutsideOption = "error",
    item_id_type: ItemIdTypeOption = None,
    no_header: NoHeaderOption = False,
    threads: Annotated[Count, count_option("Threads; all processors when omitted.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training of the same kind.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what it would spend and take; release nothing."),
    ] = False,
    items_universe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of all items, rated or not: public, where the ratings do not tell it.",
        ),
    ] = None,
    users_universe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same for users.")
    ] = None,
    pattern_is_public: Annotated[
        bool,
        typer.Option(
            "--pattern-is-public",
            help="Unit value: train although which pairs are rated depends on values, as with "
            "--outside drop, because that is public.",
        ),
    ] = False,
    users_out: Annotated[
        str | None,
        typer.Option(
            help="Users in the release: ids, pseudonyms (random) or none; never under unit user."
        ),
    ] = None,
    pseudonyms_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Private file (Parquet) for the map from ids to pseudonyms."
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Sign the release with this key; see taciturn keygen."),
    ] = None,
    no_mask_features: Annotated[
        bool,
        typer.Option(
            "--no-mask-features",
            rich_help_panel=ALS,
            help="Unit value: use and publish no features of who rated what; less accurate.",
        ),
    ] = False,
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            rich_help_panel=ALS,
            help="Unit value: release how sure profiles are, for deviations of predictions.",
        ),
    ] = False,
    private_items_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PAPER,
            help="Write the item profiles, never noised and private, to a Parquet file.",
        ),
    ] = None,
    epsilon_i: Annotated[
        Number, number_option("ε of one iteration, instead of --epsilon.", panel=PAPER)
    ] = None,
    delta_i: Annotated[
        Number, number_option("δ of one iteration; 0.01 when omitted.", panel=PAPER)
    ] = None,
    norm_bound: Annotated[
        Number, number_option("Norm bound C of profiles; 1 when omitted.", panel=PAPER)
    ] = None,
    centre: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=PAPER,
            help="item-mean subtracts exact item means, as the paper's experiments did: "
            "the claim does not cover it.",
        ),
    ] = None,
    tau: Annotated[
        Number,
        number_option("Range that the noise is scaled for; the scale's when omitted.", panel=PAPER),
    ] = None,
    tolerance: Annotated[
        Number,
        number_option(
            "Stop when the training error falls by less within --patience iterations: depends "
            "on the ratings, the claim does not cover it.",
            panel=PAPER,
        ),
    ] = None,
    patience: Annotated[
        Count,
        count_option("Iterations that --tolerance looks back on; 15 when omitted.", panel=PAPER),
    ] = None,
    json: Json = False,
) -> None:
    """Train on ratings within a privacy budget and write a release."""
    from taciturn._internal.files import check_absent
    from taciturn.accounting.certificate import delta_warning
    from taciturn.accounting.units import Unit
    from taciturn.data.id_lists import among_listed
    from taciturn.errors import InvalidParameter, TaciturnError
    from taciturn.solvers.catalog import make_solver, unit_option
    from taciturn.training.outputs import Outputs, run_folder, users_in_release
    from taciturn.training.preview import preview
    from taciturn.training.train import train as run_training

    if output is None and not dry_run:
        raise InvalidParameter("say where to write the release: -o DIR; or look first: --dry-run")
    chosen = make_solver(
        solver,
        **unit_option(solver, unit),
        factors=factors,
        iterations=iterations,
        step_size=step_size,
        regularization=regularization,
        epsilon_i=epsilon_i,
        delta_i=delta_i,
        delta=delta if epsilon_i is not None and solver == "paper" else None,
        norm_bound=norm_bound,
        centre=centre,
        tau=tau,
        tolerance=tolerance,
        patience=patience,
        mask_features=False if no_mask_features else None,
        uncertainty=uncertainty or None,
    )
    budget = _budget(chosen, epsilon, delta, epsilon_i)
    hidden = Unit(unit)
    users_in_release(chosen, users_out)
    if hidden is Unit.USER and users_universe is not None:
        raise InvalidParameter("unit user releases no list of users; leave out --users-universe")
    if items_universe is not None and item_id_type is not None:
        raise InvalidParameter(
            "the item list decides the type of item ids; leave out --item-id-type"
        )
    how = scale, columns, separator, duplicates, missing, outside, item_id_type, no_header
    ratings = read(source, *how)
    ratings = among_listed(ratings, users=users_universe, items=items_universe)
    for sentence in ratings.preparation.notes():
        note(sentence)
    # Under unit user the number of users is private, and this output is the owner's.
    stated = budget.delta if budget is not None else getattr(chosen, "delta", delta)
    warning = delta_warning(stated, ratings.shape[0]) if chosen.is_private else None
    if warning is not None:
        warn(f"{warning} (owner-only: this line states the exact number of users)")
    if dry_run:
        if output is not None:
            check_absent(output)
        seen = preview(
            ratings,
            chosen,
            budget,
            holdout=holdout,
            threads=threads,
            pattern_is_public=pattern_is_public,
        )
        _show_preview(seen, chosen, hidden, json)
        _say_public(hidden, users_universe, items_universe)
        return
    release = output or Path()  # given, as was checked above
    waited = run_folder(release).exists()
    try:
        with iterations_bar(solver) as steps:
            trained = run_training(
                ratings,
                chosen,
                budget,
                output=Outputs(
                    release=release,
                    users_out=users_out,
                    pseudonyms=pseudonyms_out,
                    private_items=private_items_out,
                    sign=sign,
                ),
                holdout=holdout,
                seed=seed,
                threads=threads,
                resume=resume,
                pattern_is_public=pattern_is_public,
                progress=steps,
            )
    except KeyboardInterrupt:
        if run_folder(release).exists():
            note("interrupted; the same command with --resume goes on, with the same noise")
        raise
    except TaciturnError:
        if run_folder(release).exists() and not waited:
            note(
                f"what was released so far counts; it is booked in {run_folder(release)}: go on "
                "with --resume, or remove the folder to begin again"
            )
        raise
    _show_result(trained, json)
    _say_public(hidden, users_universe, items_universe)
    fit = trained.fit
    if fit is not None and solver == "als" and fit.model.factor_count == 0:
        note(
            "noise leaves no room for factors here: the release has biases only, which rank items "
            "the same for everybody; a larger epsilon or more ratings would change that"
        )
    if fit is not None and fit.private_items is not None and private_items_out is None:
        note(
            "the item profiles were never noised and are not in the release; "
            "--private-items-out keeps them for you"
        )


def _budget(
    solver: "Solver", epsilon: float | None, delta: float, epsilon_i: float | None
) -> "Budget | None":
    from taciturn.accounting.budget import Budget
    from taciturn.errors import InvalidParameter

    if epsilon is not None:
        if not solver.is_private:
            raise InvalidParameter(f"{solver.name} is not private; leave out --epsilon")
        return Budget.from_epsilon(epsilon, delta)
    if solver.is_private and epsilon_i is None:
        raise InvalidParameter("a private solver needs a budget: --epsilon E")
    return None


def _say_public(unit: "Unit", users: Path | None, items: Path | None) -> None:
    """Say which lists are published as they are in the ratings, where the unit hides ratings."""
    roles = [
        role
        for role, path, is_listed in (
            ("users", users, unit == "rating"),
            ("items", items, unit != "value"),
        )
        if path is None and is_listed
    ]
    if roles:
        note(
            f"the list of {' and '.join(roles)} is taken from the ratings and treated as public; "
            f"if it is not, list all there are: {', '.join(f'--{role}-universe' for role in roles)}"
        )


def _show_preview(preview: "Preview", solver: "Solver", unit: "Unit", json: bool) -> None:
    certificate = preview.certificate
    epsilon, mu = (certificate.epsilon, certificate.mu) if certificate else (None, None)
    delta = certificate.delta if certificate else None
    if json:
        emit_json(
            {
                "view": "owner",
                "dry_run": True,
                "solver": solver.name,
                "status": preview.status,
                "unit": unit,
                "releases": preview.releases,
                "epsilon": epsilon,
                "delta": delta,
                "mu": mu,
                "seconds": preview.seconds,
                "memory_bytes": preview.memory,
            }
        )
        return
    rows = [("status", preview.status.value, "")]
    if certificate:
        rows += [
            ("releases", f"{preview.releases:,}", "tables with noise"),
            ("epsilon", _up(epsilon), f"at delta = {delta:g}"),
            ("mu", _up(mu), "total Gaussian-DP parameter"),
        ]
    rows += [
        ("time", duration(preview.seconds), "about, on this machine: owner's view"),
        ("memory", f"{preview.memory / 2**20:,.0f} MiB", "about, ratings included: owner's view"),
    ]
    say(f"dry run of {solver.name}: nothing was released")
    say(table(rows))
    if certificate:
        say()
        say(certificate.to_text().rstrip())


def _show_result(trained: "Trained", json: bool) -> None:
    certificate = trained.certificate
    errors = {"rmse_train": trained.rmse_train, "rmse_test": trained.rmse_test}
    owner = {name: error for name, error in errors.items() if error is not None}
    for reason in certificate.reasons:
        warn(f"{certificate.status}: {reason}")
    if json:
        emit_json(
            {
                "view": "owner",
                "status": certificate.status,
                "unit": certificate.unit,
                "epsilon": certificate.epsilon,
                "delta": certificate.delta,
                "mu": certificate.mu,
                "seconds": trained.seconds,
                "release": str(trained.release),
            }
            | owner
            | ({"rmse_view": "owner"} if owner else {})
        )
        return
    say(f"release: {trained.release}")
    rows = [("status", certificate.status.value, "")]
    if certificate.epsilon is not None:
        rows.append(("epsilon", _up(certificate.epsilon), f"at delta = {certificate.delta:g}"))
        rows.append(("mu", _up(certificate.mu), "total Gaussian-DP parameter"))
    rows.append(("time", duration(trained.seconds), "owner's view"))
    remark = "owner's view: exact, not for publication"
    rows += [(name.replace("_", " "), f"{error:.4f}", remark) for name, error in owner.items()]
    say(table(rows))


def _up(value: float | None) -> str:
    from taciturn.accounting.certificate import rounded_up

    return "" if value is None else rounded_up(value, 6)
