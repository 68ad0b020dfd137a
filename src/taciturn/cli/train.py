"""`taciturn train`: train on ratings and write a release with its certificate."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.about import about_options
from taciturn.cli.config import ConfigOption, ShowConfigOption, configuration
from taciturn.cli.console import emit_json, note, personalisation, say, table, warn
from taciturn.cli.options import Delta, Json, Threads, count_option, number_option, with_options
from taciturn.cli.progress import duration, iterations_bar
from taciturn.cli.reading import (
    ItemFeaturesOption,
    PublicRatingsOption,
    Source,
    read,
    reading_options,
)
from taciturn.cli.solvers import model_options

if TYPE_CHECKING:
    from taciturn.data.id_lists import IdLists
    from taciturn.data.options import ReadingOptions
    from taciturn.release.about import About
    from taciturn.training.job import Budgeted, Job
    from taciturn.training.outputs import Outputs
    from taciturn.training.preview import Preview
    from taciturn.training.train import Trained

Number = float | None
Count = int | None

ALS, PAPER = "Options of --solver als", "Options of --solver paper"


@with_options(model=model_options(als_panel=ALS))
def solver_options(
    *,
    epsilon: Annotated[
        Number,
        number_option(
            "Overall ε: the budget of the whole run. Required by private solvers, unless "
            "--epsilon-i is given."
        ),
    ] = None,
    delta: Delta = 1e-5,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Privacy unit: rating (one rating and the fact that it exists), value (its value "
            "only: the rating pattern is public) or user (all ratings of a user; only item "
            "profiles are released). Default: rating; solvers that support value only require "
            "--unit value."
        ),
    ] = None,
    solver: Annotated[str, typer.Option(help="Solver: one of {solvers}.")] = "als",
    model: dict[str, Any],
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            rich_help_panel=ALS,
            help="Also release variances, so that predictions have standard deviations, and stars "
            "have probabilities. Default: off.",
        ),
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ALS,
            help="How users are served: profiles (released, with noise) or fold-in (each user's "
            "profile is solved exactly from released items and their own ratings, and shown to "
            "them only; implies --users-out none). Default: profiles; with --unit user, fold-in.",
        ),
    ] = None,
    epsilon_i: Annotated[
        Number, number_option("ε of one iteration, instead of --epsilon.", panel=PAPER)
    ] = None,
    delta_i: Annotated[
        Number, number_option("δ of one iteration. Default: 0.01.", panel=PAPER)
    ] = None,
    norm_bound: Annotated[
        Number, number_option("Norm bound C of profiles. Default: 1.", panel=PAPER)
    ] = None,
    centre: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=PAPER,
            help="item-mean subtracts exact item means, as the paper's experiments did; the claim "
            "does not cover this. Default: none.",
        ),
    ] = None,
    tau: Annotated[
        Number,
        number_option(
            "Rating range that the noise is calibrated to. Default: the range of --scale.",
            panel=PAPER,
        ),
    ] = None,
    tolerance: Annotated[
        Number,
        number_option(
            "Stop when the training error falls by less than this in --patience iterations; the "
            "claim does not cover this. Default: run all iterations.",
            panel=PAPER,
        ),
    ] = None,
    patience: Annotated[
        Count,
        count_option("Number of iterations for --tolerance. Default: 15.", panel=PAPER),
    ] = None,
) -> "Budgeted":
    """Solver and budget of a training."""
    from taciturn.training.job import Budgeted

    options = model | {
        "uncertainty": uncertainty or None,
        "serve": serve,
        "epsilon_i": epsilon_i,
        "delta_i": delta_i,
        "norm_bound": norm_bound,
        "centre": centre,
        "tau": tau,
        "tolerance": tolerance,
        "patience": patience,
    }
    return Budgeted.of(solver, unit, epsilon, delta, options)


def id_list_options(
    item_list: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of all item ids, including unrated ones; treated as public. Default: the "
            "items in the ratings.",
        ),
    ] = None,
    user_list: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of all user ids, including those without ratings; treated as public. "
            "Default: the users in the ratings.",
        ),
    ] = None,
) -> "IdLists":
    """Public id lists of a training."""
    from taciturn.data.id_lists import IdLists

    return IdLists(users=user_list, items=item_list)


@with_options(about=about_options)
def output_options(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the release; must not exist. Required without --dry-run.",
        ),
    ] = None,
    users_out: Annotated[
        str | None,
        typer.Option(
            help="Users in the release: ids, pseudonyms (random) or none. Default: ids. "
            "With --unit user or --serve fold-in, only none is possible, and it is the default."
        ),
    ] = None,
    pseudonyms_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Private Parquet file for the map from user ids to pseudonyms; required by "
            "--users-out pseudonyms.",
        ),
    ] = None,
    pseudonyms_in: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Private map that an earlier --pseudonyms-out wrote: its users keep their "
            "pseudonyms, and --pseudonyms-out gets all of its rows too. Readers can then follow a "
            "user across releases. Default: new pseudonyms for all users.",
        ),
    ] = None,
    latest: Annotated[
        Path | None,
        typer.Option(
            metavar="LINK",
            help="Symbolic link to set to the release once it is in place; replaces an earlier "
            "link atomically. Default: none.",
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY", help="Private key to sign the release with, from taciturn keygen."
        ),
    ] = None,
    private_items_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PAPER,
            help="Private Parquet file for the item profiles, which have no noise and are not "
            "released.",
        ),
    ] = None,
    about: "About",
) -> "Outputs | None":
    """Output paths of a training; None without --output."""
    from taciturn.training.outputs import Outputs

    if output is None:
        return None
    return Outputs(
        release=output,
        users_out=users_out,
        pseudonyms=pseudonyms_out,
        pseudonyms_in=pseudonyms_in,
        private_items=private_items_out,
        sign=sign,
        latest=latest,
        about=about,
    )


@with_options(
    outputs=output_options,
    trained=solver_options,
    reading=reading_options,
    lists=id_list_options,
)
def train(
    *,
    context: typer.Context,
    source: Source,
    outputs: "Outputs | None",
    trained: "Budgeted",
    holdout: Annotated[
        Number,
        number_option(
            "Fraction of the ratings to hold out and report the error on (owner-only). "
            "Default: none."
        ),
    ] = None,
    seed: Annotated[
        int, count_option("Public seed of the split and the initial profiles; noise never uses it.")
    ] = 0,
    reading: "ReadingOptions",
    threads: Threads = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume an interrupted run with the same data and options."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the privacy cost, time and memory; release nothing."),
    ] = False,
    lists: "IdLists",
    item_features: ItemFeaturesOption = None,
    public_ratings: PublicRatingsOption = None,
    pattern_is_public: Annotated[
        bool,
        typer.Option(
            "--pattern-is-public",
            help="Unit value: declare the rating pattern public even though it depends on rating "
            "values, as with --outside drop. Default: refuse to train.",
        ),
    ] = False,
    config: ConfigOption = None,
    show_config: ShowConfigOption = False,
    json: Json = False,
) -> None:
    """Train on ratings within a privacy budget and write a release."""
    from taciturn.data.named_features import GivenFeatures
    from taciturn.data.public_ratings import GivenPublicRatings
    from taciturn.training.job import Job

    if outputs is not None:
        outputs = replace(outputs, configuration=configuration(context))
    job = Job(
        source=source,
        reading=reading,
        trained=trained,
        lists=lists,
        features=None if item_features is None else GivenFeatures(item_features, source),
        public=None if public_ratings is None else GivenPublicRatings(public_ratings, source),
        outputs=outputs,
        holdout=holdout,
        seed=seed,
        threads=threads,
        pattern_is_public=pattern_is_public,
    )
    if dry_run:
        _show_preview(job.preview(read=read, note=note, warn=warn), job, json)
        return
    bar = partial(iterations_bar, job.trained.solver.name)
    result = job.run(resume=resume, read=read, note=note, warn=warn, progress=bar)
    _show_result(result, json)


def _show_preview(preview: "Preview", job: "Job", json: bool) -> None:
    solver = job.trained.solver
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
                "unit": job.unit,
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
            ("releases", f"{preview.releases:,}", "noisy tables"),
            ("epsilon", _up(epsilon), f"at delta = {delta:g}"),
            ("mu", _up(mu), "total Gaussian-DP parameter"),
        ]
    rows += [
        ("time", duration(preview.seconds), "estimate for this machine (owner-only)"),
        (
            "memory",
            f"{preview.memory / 2**20:,.0f} MiB",
            "estimate, including the ratings (owner-only)",
        ),
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
    personalised = personalisation(is_personalised=trained.is_personalised)
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
                "factors": trained.factors,
                "interest_factors": max(0, trained.interest - 1),
            }
            | ({} if trained.latest is None else {"latest": str(trained.latest)})
            | personalised
            | owner
            | ({"rmse_view": "owner"} if owner else {})
        )
        return
    say(f"release: {trained.release}")
    if trained.latest is not None:
        say(f"latest: {trained.latest}")
    rows = [("status", certificate.status.value, "")]
    if certificate.epsilon is not None:
        rows.append(("epsilon", _up(certificate.epsilon), f"at delta = {certificate.delta:g}"))
        rows.append(("mu", _up(certificate.mu), "total Gaussian-DP parameter"))
    rows.append(("factors", str(trained.factors), personalised.get("reason", "")))
    if trained.interest:
        rows.append(("interest", str(trained.interest - 1), "factors beside popularity, for lists"))
    rows.append(("time", duration(trained.seconds), "owner-only: depends on private data"))
    remark = "owner-only: exact, not for publication"
    rows += [(name.replace("_", " "), f"{error:.4f}", remark) for name, error in owner.items()]
    say(table(rows))


def _up(value: float | None) -> str:
    from taciturn.accounting.certificate import rounded_up

    return "" if value is None else rounded_up(value, 6)
