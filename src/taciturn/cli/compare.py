"""`taciturn compare`: accuracy of several solvers at several privacy budgets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import emit_json, note, say
from taciturn.cli.options import Delta, Json, Threads, count_option, number_option, with_options
from taciturn.cli.progress import cells_bar
from taciturn.cli.reading import (
    ItemFeaturesOption,
    PublicRatingsOption,
    Source,
    read,
    reading_options,
)
from taciturn.errors import InvalidParameter

if TYPE_CHECKING:
    from taciturn.data.options import ReadingOptions
    from taciturn.data.ratings import Ratings
    from taciturn.evaluate.plan import Plan

UNRELATED = (
    "user ids of the ratings and of the public ratings are taken as unrelated: users who are in "
    "both are tested too; if equal ids mean one person, pass --same-users"
)
SHARED = "users whose id is in the public ratings are trained on, but not tested"


@with_options(reading=reading_options)
def compare(
    source: Source,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Output directory for table, plot and page. Finished runs are cached here; rerun "
            "the command to resume.",
        ),
    ],
    epsilons: Annotated[
        str,
        typer.Option(
            metavar="E,E,…", help="Overall ε values; accounting is exact for each solver."
        ),
    ] = "0.5,1,2",
    solvers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Solvers, as for taciturn train; the first that predicts ratings is the baseline. "
            "popularity and non-private-popularity are always added. Default: {compared_solvers}.",
        ),
    ] = None,
    units: Annotated[
        str,
        typer.Option(
            metavar="UNIT,…",
            help="Privacy units: value, rating, user. Solvers that support value only are run "
            "under value.",
        ),
    ] = "rating",
    seeds: Annotated[
        int,
        count_option(
            "Number of random splits. A seed fixes split and initial profiles, not noise."
        ),
    ] = 3,
    first_seed: Annotated[int, count_option("First seed; the others follow consecutively.")] = 0,
    delta: Delta = 1e-5,
    holdout: Annotated[float, number_option("Fraction of the ratings held out for testing.")] = 0.1,
    serve: Annotated[
        str | None,
        typer.Option(
            help="How als serves users: profiles or fold-in, as for taciturn train. Default: "
            "profiles; under unit user, fold-in."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Results of an earlier run on the same ratings: its compare.json, or its output "
            "with --json. Prints the RMSE differences of runs with the same solver, unit, ε and "
            "seed. Default: no differences.",
        ),
    ] = None,
    *,
    reading: "ReadingOptions",
    item_features: ItemFeaturesOption = None,
    public_ratings: PublicRatingsOption = None,
    same_users: Annotated[
        bool,
        typer.Option(
            "--same-users",
            help="Equal user ids in the ratings and in the public ratings mean one person; the "
            "held-out ratings of such users are left out. Default: user ids are unrelated.",
        ),
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Train several solvers at several budgets and compare their held-out errors and their lists.

    All solvers use the same splits. The results are exact functions of private data, so they are
    owner-only, and no guarantee covers using them to choose a solver.
    """
    from taciturn._internal import validate
    from taciturn._internal.optional import require
    from taciturn.accounting.units import Unit
    from taciturn.evaluate.compare import run_comparison
    from taciturn.evaluate.compare_report import OWNER, as_text, write_comparison
    from taciturn.evaluate.plan import DEFAULT, Plan

    plan = Plan(
        solvers=DEFAULT if solvers is None else tuple(name.strip() for name in solvers.split(",")),
        units=tuple(validate.choice("units", each.strip(), Unit) for each in units.split(",")),
        epsilons=_numbers(epsilons),
        delta=delta,
        seeds=seeds,
        first_seed=first_seed,
        holdout=holdout,
        serve=serve,
        has_public=public_ratings is not None,
        same_users=same_users,
    )
    require("matplotlib.figure", extra="plots")
    if plan.value_only:
        note(f"run under unit value, the only one they support: {', '.join(plan.value_only)}")
    title = source if serve is None else f"{source}, served by {serve}"
    ratings, title = _with_inputs(plan, source, reading, title, item_features, public_ratings)
    try:
        with cells_bar("runs") as cells:
            comparison = run_comparison(
                ratings,
                plan,
                source=title,
                folder=output,
                threads=threads,
                progress=cells,
                against=against,
            )
    except KeyboardInterrupt:
        note("interrupted; rerun the command to resume")
        raise
    files = write_comparison(output, comparison)
    if pairing := comparison.pairing():
        for each in pairing.notes:
            note(each)
    if json:
        emit_json(comparison.to_dict() | {"files": [str(file) for file in files]})
        return
    say(as_text(comparison))
    say(f"written to {output}: {', '.join(file.name for file in files)}")
    note(OWNER)


def _with_inputs(
    plan: "Plan",
    source: str,
    reading: "ReadingOptions",
    title: str,
    item_features: str | None,
    public_ratings: str | None,
) -> "tuple[Ratings, str]":
    """Ratings with their public inputs, and the title of the comparison."""
    from taciturn.data.named_features import GivenFeatures
    from taciturn.data.public_ratings import GivenPublicRatings

    given = None
    if item_features is not None:
        plan.check_item_features()
    if public_ratings is not None:
        plan.check_public_ratings()
        given = GivenPublicRatings(public_ratings, source)
    elif plan.same_users:
        raise InvalidParameter("--same-users needs --public-ratings SOURCE")
    if item_features is None:
        ratings = read(source, reading)
    else:
        ratings = GivenFeatures(item_features, source).join(lambda: read(source, reading))
        title = f"{title} with item features {item_features}"
    if given is not None:
        ratings = given.join(ratings, licence=note)
        title = f"{title} with public ratings {public_ratings}"
        note(SHARED if plan.same_users else UNRELATED)
    return ratings, title


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"--epsilons needs numbers separated by commas, such as 0.5,1,2, got {text[:40]!r}"
        ) from None
