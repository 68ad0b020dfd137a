"""`taciturn verify`, `keygen`, `recommend`, `predict`, `similar`, `export`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, printable, say, table, warn
from taciturn.cli.options import Json, count_option, number_option, with_options

if TYPE_CHECKING:
    from taciturn.recommend.requests import Recipient, Service
    from taciturn.recommend.serve import Recommendation

ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.")]
HowMany = Annotated[int, count_option("How many items.", "-k", "--count")]
TitlesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A table with an id and a title column.")
]


def service_options(
    release: ReleaseFolder,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Item profiles of your own: Parquet with item_id, profile and perhaps bias, or "
            ".npy.",
        ),
    ] = None,
    item_ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The ids of the rows of an .npy file: a table."),
    ] = None,
) -> "Service":
    """Release that is served."""
    from taciturn.recommend.requests import Service

    return Service(release, items, item_ids, note)


def recipient_options(
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="User of the release whom it is for.")
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Somebody's own ratings instead of a user, a table with item and rating columns: "
            "stays here, and is never in a release.",
        ),
    ] = None,
) -> "Recipient":
    """User whom a list or a prediction is for."""
    from taciturn.recommend.requests import Recipient

    return Recipient(user=user, ratings=ratings)


def verify(
    release: ReleaseFolder,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Also accept this status: claimed, void or none. May be repeated."),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The release must be signed with this key."),
    ] = None,
    max_epsilon: Annotated[
        float | None, number_option("Fail if the epsilon of the release is larger.")
    ] = None,
    max_delta: Annotated[
        float | None, number_option("Fail if the delta of the release is larger.")
    ] = None,
    population: Annotated[
        int | None,
        count_option(
            "Number of users in the data: warn if delta is not below one over it. Default: the "
            "number of users in the release, if it lists them."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the guarantee of a release from its ledger and check every file.

    Exit code 0 only for an intact release whose status is proven, or allowed by you.
    """
    from taciturn._internal import validate
    from taciturn.accounting.certificate import rounded_up
    from taciturn.accounting.ledger import Status
    from taciturn.errors import CheckFailed
    from taciturn.release.sign import read_public_key
    from taciturn.release.verify import verify_release

    allowed = {Status.PROVEN} | {validate.choice("allow", each, Status) for each in allow or ()}
    key = read_public_key(public_key) if public_key is not None else None
    verdict = verify_release(
        release,
        allowed=frozenset(allowed),
        public_key=key,
        max_epsilon=max_epsilon,
        max_delta=max_delta,
        population=population,
    )
    found = verdict.release.certificate if verdict.release else None
    if json:
        emit_json(
            {
                "passed": verdict.passed,
                "status": found.status if found else None,
                "unit": found.unit if found else None,
                "epsilon": found.epsilon if found else None,
                "delta": found.delta if found else None,
                "mu": found.mu if found else None,
                "signed": verdict.is_signed,
                "warnings": list(verdict.warnings),
                "checks": [
                    {"name": check.name, "passed": check.passed, "detail": check.detail}
                    for check in verdict.checks
                ],
            }
        )
    else:
        rows = [
            (check.name, "ok" if check.passed else "FAILED", check.detail)
            for check in verdict.checks
        ]
        say(table(rows))
        if found is not None and found.epsilon is not None:
            certified = "" if found.status is Status.PROVEN else f", {found.status}"
            say(
                f"unit {found.unit}{certified}: epsilon = {rounded_up(found.epsilon, 6)} "
                f"at delta = {found.delta:g}, mu = {rounded_up(found.mu or 0.0, 6)}"
            )
    for warning in verdict.warnings:
        warn(warning)
    if not verdict.passed:
        failed = ", ".join(check.name for check in verdict.checks if not check.passed)
        raise CheckFailed(f"{release} did not pass: {failed}")


def keygen(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the private key goes.")
    ] = Path("taciturn.key"),
    json: Json = False,
) -> None:
    """Make a key pair to sign releases with: FILE, private, and FILE.pub to hand out."""
    from taciturn.release.sign import make_keys

    private, public = make_keys(output)
    if json:
        emit_json({"private_key": str(private), "public_key": str(public)})
        return
    say(f"private key: {private} (keep it)")
    say(f"public key:  {public} (hand it out)")


@with_options(recipient=recipient_options, service=service_options)
def recommend(
    *,
    service: "Service",
    recipient: "Recipient",
    count: HowMany = 10,
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Items not to recommend: a table with an item column, and perhaps a user column.",
        ),
    ] = None,
    titles: TitlesOption = None,
    json: Json = False,
) -> None:
    """Recommend the items with the highest predicted ratings.

    To a user of the release, or to somebody who has ratings of their own and is not in it. What
    they rated is then left out.
    """
    user, best = service.recommend(recipient, count, exclude)
    _show({"user_id": user}, best, service, titles, json)


@with_options(service=service_options)
def similar(
    *,
    service: "Service",
    item: Annotated[str, typer.Option(metavar="ID", help="The item to compare with.")],
    count: HowMany = 10,
    titles: TitlesOption = None,
    json: Json = False,
) -> None:
    """Show the items whose profiles are most alike; scores are cosines."""
    identifier, best = service.similar(item, count)
    _show({"item_id": identifier}, best, service, titles, json)


@with_options(recipient=recipient_options, service=service_options)
def predict(
    *,
    service: "Service",
    item: Annotated[str, typer.Option(metavar="ID", help="Item to predict a rating for.")],
    recipient: "Recipient",
    json: Json = False,
) -> None:
    """Predict a rating, clipped to the scale, with its standard deviation if the release has it."""
    found = service.predict(recipient, item)
    if json:
        document = asdict(found)
        if found.deviation is None:
            del document["deviation"]
        emit_json(document)
        return
    deviation = "" if found.deviation is None else f" ± {found.deviation:.3f}"
    say(f"{found.rating:.3f}{deviation}")


def export(
    release: ReleaseFolder,
    to: Annotated[str, typer.Option(metavar="FORM", help="parquet, npz or ann.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="PATH", help="Where to; it must not exist.")
    ],
    json: Json = False,
) -> None:
    """Write a release in a form that other programs read; ann needs the extra `ann`."""
    from taciturn._internal import validate
    from taciturn.recommend.export import Form, export_release
    from taciturn.release.read import load_release

    form = validate.choice("to", to, Form)
    facts = export_release(load_release(release), form, output)
    if json:
        emit_json({"output": str(output)} | facts)
        return
    say(f"exported to {output}")
    say(table([(name.replace("_", " "), "", str(fact)) for name, fact in facts.items()]))


def _show(
    head: dict[str, Any],
    best: "list[Recommendation]",
    service: "Service",
    titles: Path | None,
    json: bool,
) -> None:
    """Print a ranked list, with titles if there are some."""
    from taciturn.recommend.tables import read_titles

    rows = [asdict(each) for each in best]
    if titles is not None:
        names = read_titles(titles, service.item_ids)
        rows = [row | {"title": names.get(row["item_id"])} for row in rows]
    if json:
        emit_json(head | {"items": rows})
        return
    lines = [
        (
            f"{row['rank']}.",
            f"{row['score']:.3f}",
            printable(f"{row['item_id']}  {row.get('title') or ''}"),
        )
        for row in rows
    ]
    say(table(lines) if lines else "nothing is left to show")
