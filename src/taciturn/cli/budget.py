"""`taciturn budget`: privacy cost of releases, and noise calibration for a budget."""

from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, say, table, warn
from taciturn.cli.options import Delta, Json, Plot, count_option, number_option

if TYPE_CHECKING:
    from taciturn.accounting.mixed import Total
    from taciturn.release.compose import Composed

UNKNOWN_DATA = (
    "a release does not say which data it is of; if no user is in the data of two of these, each "
    "certificate holds on its own"
)

app = typer.Typer(
    no_args_is_help=True,
    help="Compute the privacy cost of releases, or the noise for a budget. Reads no private data.",
    epilog="Example: taciturn budget calibrate --epsilon 1 --delta 1e-5",
)


@app.command(
    epilog="Example: taciturn budget paper --epsilon-i 0.4 --delta-i 0.01 --iterations 300 "
    "--delta 1e-5"
)
def paper(
    epsilon_i: Annotated[float, number_option("ε of one iteration, between 0 and 1.")],
    delta_i: Annotated[float, number_option("δ of one iteration; the paper uses 0.01.")],
    iterations: Annotated[int, count_option("Number of iterations J.")],
    delta: Delta = 1e-5,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compute the overall ε of the paper's noise: the paper's own formula next to the exact value.

    Both hold for a mechanism whose sensitivity is bounded at every step. The paper's algorithm has
    no such bound, so for it they are only claims.
    """
    from taciturn.accounting.accounts import account, steps_of
    from taciturn.accounting.paper import paper_account

    claimed = paper_account(
        epsilon_i=epsilon_i, delta_i=delta_i, iterations=iterations, delta=delta
    )
    for warning in claimed.warnings:
        warn(warning)
    ratios = [steps_of(claimed.noise_multiplier, iterations)]
    document = asdict(claimed) | asdict(account(ratios, delta)) | {"mu": claimed.mu}
    document["warnings"] = list(claimed.warnings)
    _draw(plot, ratios, delta)
    if json:
        emit_json(document)
        return
    say(f"{iterations} iterations at epsilon_i = {epsilon_i:g}, delta_i = {delta_i:g}")
    alpha = ("alpha", _shown(claimed.alpha), "the paper's best Rényi order")
    say(table([alpha, *_rows(document)]))


@app.command(
    epilog="Examples: taciturn budget compose --noise-multiplier 5 --count 100 --delta 1e-5   |   "
    "taciturn budget compose release-1/ release-2/ --delta 1e-5"
)
def compose(
    releases: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RELEASE]...",
            help="Release folders, certificates or ledger files. Taciturn cannot know whether they "
            "are of the same data.",
            show_default=False,
        ),
    ] = None,
    noise_multiplier: Annotated[
        list[float] | None,
        number_option("Noise scale / sensitivity. May be repeated."),
    ] = None,
    count: Annotated[
        list[int] | None,
        count_option(
            "Number of releases with this noise; one --count for each --noise-multiplier. "
            "Default: 1."
        ),
    ] = None,
    delta: Delta = 1e-5,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compose several releases and compute their total privacy cost.

    Pass either noise multipliers with counts, or releases. The total holds only if all noise
    scales, or a cap on their total cost, were fixed in advance. For releases under different
    privacy units, it states what holds for one rating and for one user.
    """
    from taciturn.errors import InvalidParameter

    if bool(releases) == bool(noise_multiplier):
        raise InvalidParameter(
            "pass either releases or --noise-multiplier with --count; see taciturn budget compose "
            "--help"
        )
    if releases:
        if count:
            raise InvalidParameter(
                "--count applies to --noise-multiplier, not to releases; leave it out"
            )
        _compose_releases(releases, delta, plot, json)
    else:
        _compose_multipliers(noise_multiplier or [], count, delta, plot, json)


@app.command(epilog="Example: taciturn budget calibrate --epsilon 1 --delta 1e-5 --count 100")
def calibrate(
    epsilon: Annotated[float, number_option("Overall ε of the budget.")],
    delta: Delta = 1e-5,
    count: Annotated[
        int, count_option("Number of equal releases, or equal trainings, that share the budget.")
    ] = 1,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Compute the smallest noise that stays within a budget, or the budget of each training.

    Noise is rounded up, and the ε of each of several trainings is rounded down.
    """
    from taciturn.accounting.accounts import steps_of
    from taciturn.accounting.budget import Budget
    from taciturn.accounting.calibration import noise_multiplier, training_epsilon

    budget = Budget.from_epsilon(epsilon, delta)
    multiplier = noise_multiplier(budget.mu, count)
    _draw(plot, [steps_of(multiplier, count)], delta)
    each = budget.epsilon if count == 1 else training_epsilon(budget.mu, delta, count)
    if json:
        emit_json(
            asdict(budget)
            | {"count": count, "noise_multiplier": multiplier, "epsilon_of_each_training": each}
        )
        return
    remark = "noise scale / sensitivity" + (" of each release" if count > 1 else "")
    say(f"epsilon = {epsilon:g} at delta = {delta:g}, spent on {_releases(count)}")
    say(
        table(
            [
                ("mu", rounded(budget.mu, ROUND_FLOOR), "total Gaussian-DP parameter"),
                ("noise_multiplier", rounded(multiplier, ROUND_CEILING), remark),
            ]
        )
    )
    if count > 1:
        say(
            f"each of {count:,} trainings may spend epsilon = {each:g} at delta = {delta:g} "
            f"(taciturn train --epsilon {each:g} --delta {delta:g})"
        )


def _compose_multipliers(
    multipliers: list[float],
    counts: list[int] | None,
    delta: float,
    plot: Path | None,
    json: bool,
) -> None:
    from taciturn.accounting.accounts import account, steps_of
    from taciturn.errors import InvalidParameter

    counts = counts or [1] * len(multipliers)
    if len(counts) != len(multipliers):
        raise InvalidParameter(
            f"pass one --count for each --noise-multiplier, got {len(counts)} and "
            f"{len(multipliers)}"
        )
    ratios = [steps_of(*pair) for pair in zip(multipliers, counts, strict=True)]
    document = asdict(account(ratios, delta)) | {"count": sum(counts)}
    _draw(plot, ratios, delta)
    if json:
        emit_json(document)
        return
    say(f"{_releases(sum(counts))} together")
    say(table(_rows(document)))


def _compose_releases(paths: list[Path], delta: float, plot: Path | None, json: bool) -> None:
    from taciturn.accounting.accounts import account
    from taciturn.accounting.ledger import Status
    from taciturn.release.compose import compose_releases

    composed = compose_releases(paths, delta, note)
    together, status = composed.together, composed.status
    document: dict[str, Any] = {
        "status": status,
        "reasons": list(composed.reasons),
        "unit": together.unit if together else None,
        "epsilon": together.epsilon if together else None,
        "count": sum(len(each.events) for each in composed.each),
        "releases": [
            {
                "path": str(path),
                "status": each.status,
                "unit": each.unit,
                "mu": each.mu,
                "epsilon": each.epsilon,
            }
            for path, each in zip(paths, composed.each, strict=True)
        ],
        "totals": [asdict(total) for total in composed.totals],
    }
    if together is None or status is Status.NONE:
        document |= {"delta": delta, "mu": None}
        if plot is not None:
            warn("nothing to plot: the releases have no total under one privacy unit")
    elif not (ratios := together.ledger.ratios()):
        document |= {"delta": delta, "mu": together.mu}
        if plot is not None:
            warn("nothing to plot: the releases have no noise and cost nothing")
    else:
        document |= asdict(account(ratios, delta))
        _draw(plot, ratios, delta)
    if status is not Status.PROVEN:
        warn(f"status {status}: {'; '.join(composed.reasons)}")
    if json:
        emit_json(document)
        return
    _say_composed(composed, document["releases"], delta)


def _say_composed(composed: "Composed", releases: list[dict[str, Any]], delta: float) -> None:
    from taciturn.accounting.certificate import rounded_up
    from taciturn.accounting.ledger import Status

    together, status = composed.together, composed.status
    unit = f"unit `{together.unit}`" if together else "different privacy units"
    say(f"{_releases(len(releases))}, {unit}: {status}")
    say(table([_release_row(release) for release in releases]))
    if status is Status.NONE:
        say("together: no guarantee")
        return
    certified = "certified" if status is Status.PROVEN else status.value
    same = "together, if they are of the same data, " if len(releases) > 1 else ""
    say(f"{same}{certified}, rounded up:")
    if together is not None and together.epsilon is not None and together.mu is not None:
        rows = [
            ("epsilon", rounded_up(together.epsilon, 6), f"at delta = {delta:g}"),
            ("mu", rounded_up(together.mu, 6), "total Gaussian-DP parameter"),
        ]
        say(table(rows))
    else:
        say(table([_total_row(total, delta) for total in composed.totals]))
    if len(releases) > 1:
        say(UNKNOWN_DATA)


def _total_row(total: "Total", delta: float) -> tuple[str, str, str]:
    from taciturn.accounting.certificate import rounded_up

    if total.reason is not None:
        return total.words, "unknown", total.reason
    epsilon = "no bound" if total.epsilon is None else f"epsilon = {rounded_up(total.epsilon)}"
    return total.words, epsilon, f"at delta = {delta:g}"


def _rows(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Table rows of a document with the fields of `Accounts`."""
    from taciturn.accounting.accounts import ACCOUNTANTS

    remarks = {"mu": "total Gaussian-DP parameter"} | {
        name: f"{label}, at delta = {document['delta']:g}" for name, label in ACCOUNTANTS.items()
    }
    return [(name, _shown(document[name]), remark) for name, remark in remarks.items()]


def _shown(value: float) -> str:
    """Number rounded to nearest, with digits that fit its size."""
    return f"{value:.6f}" if 1e-3 <= value < 1e9 else f"{value:.6g}"


def rounded(value: float, direction: str) -> str:
    """Positive number with ten significant digits, rounded in the given direction."""
    digits = Context(prec=10, rounding=direction).create_decimal(value)
    return f"{digits.normalize():f}"


def _release_row(release: dict[str, Any]) -> tuple[str, str, str]:
    from taciturn.accounting.certificate import rounded_up

    spent = "no guarantee" if release["mu"] is None else f"mu = {rounded_up(release['mu'], 6)}"
    return release["path"], f"unit {release['unit']}", f"{spent}, {release['status']}"


def _releases(count: int) -> str:
    return "1 release" if count == 1 else f"{count:,} releases"


def _draw(plot: Path | None, ratios: list[tuple[float, int]], delta: float) -> None:
    if plot is None:
        return
    from taciturn.accounting.plots import plot_accountants

    plot_accountants(plot, ratios, delta)
