"""`taciturn verify`, `keygen`, `recommend`, `predict`, `similar`, `export`."""

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, personalisation, printable, say, table, warn
from taciturn.cli.options import Json, count_option, day_option, number_option, with_options

if TYPE_CHECKING:
    from taciturn.recommend.requests import Listing, Recipient, Service
    from taciturn.release.verify import Verdict

ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the release.")]
HowMany = Annotated[int, count_option("Maximum number of items to show.", "-k", "--count")]
PublicKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--public-key",
        metavar="FILE",
        help="Fail unless the release is signed with this key. Default: do not check the "
        "signature, and print a warning if there is one.",
    ),
]


def service_options(
    release: ReleaseFolder,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your own item profiles: Parquet with item_id, profile and optionally bias, or "
            ".npy. Default: the item profiles of the release.",
        ),
    ] = None,
    item_ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of item ids, one for each row of the .npy file."),
    ] = None,
    titles: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of item titles, with an id and a title column. Default: ids only.",
        ),
    ] = None,
    public_key: PublicKeyOption = None,
) -> "Service":
    """Service of a release."""
    from taciturn.recommend.requests import Service

    return Service(release, items, item_ids, note, public_key, titles)


def recipient_options(
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of a user in the release.")
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ratings of a user who is not in the release, instead of --user: a table with an "
            "item and a rating column. They stay on this machine.",
        ),
    ] = None,
) -> "Recipient":
    """User to recommend to or predict for."""
    from taciturn.recommend.requests import Recipient

    return Recipient(user=user, ratings=ratings)


def verify(
    release: ReleaseFolder,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Also accept this status: claimed, void or none. May be repeated. Default: accept "
            "proven only."
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fail unless the release is signed with this key. Default: accept any valid "
            "signature, or none.",
        ),
    ] = None,
    max_epsilon: Annotated[
        float | None, number_option("Fail if the release's ε is larger. Default: no maximum.")
    ] = None,
    max_delta: Annotated[
        float | None, number_option("Fail if the release's δ is larger. Default: no maximum.")
    ] = None,
    population: Annotated[
        int | None,
        count_option(
            "Number of users in the data: warn unless δ is below 1 / COUNT. Default: the number of "
            "users in the release, if it lists them."
        ),
    ] = None,
    not_before: Annotated[
        date | None,
        day_option(
            "Fail if the release is older, against replay of an earlier signed release. Default: "
            "any date."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fail unless the release names this configuration file of taciturn train, by its "
            "SHA-256. Default: any file, or none.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the guarantee of a release from its ledger and check every file.

    Exits with code 0 only if the release is intact and its status is proven or passed to --allow.
    """
    from taciturn._internal import validate
    from taciturn.accounting.ledger import Status
    from taciturn.errors import CheckFailed
    from taciturn.release.verify import verify_release

    allowed = {Status.PROVEN} | {validate.choice("--allow", each, Status) for each in allow or ()}
    verdict = verify_release(
        release,
        allowed=frozenset(allowed),
        public_key=public_key,
        max_epsilon=max_epsilon,
        max_delta=max_delta,
        population=population,
        not_before=not_before,
        config=config,
    )
    if json:
        emit_json(_verdict_document(verdict))
    else:
        _say_verdict(verdict)
    for warning in verdict.warnings:
        warn(warning)
    if not verdict.passed:
        failed = ", ".join(check.name for check in verdict.checks if not check.passed)
        raise CheckFailed(f"{release} failed verification: {failed}")


def _verdict_document(verdict: "Verdict") -> dict[str, Any]:
    """Result of verifying a release as JSON types."""
    found = verdict.release.certificate if verdict.release else None
    facts = verdict.release.facts if verdict.release else None
    return {
        "passed": verdict.passed,
        "status": found.status if found else None,
        "unit": found.unit if found else None,
        "epsilon": found.epsilon if found else None,
        "delta": found.delta if found else None,
        "mu": found.mu if found else None,
        "date": facts.date.isoformat() if facts else None,
        "configuration": (facts.configuration.to_dict() if facts and facts.configuration else None),
        "ids_from_ratings": list(facts.ids_from_ratings or ()) if facts else None,
        "public_inputs": [each.to_dict() for each in found.public_inputs] if found else None,
        "about": facts.about.given() if facts else None,
        "signed": verdict.is_signed,
        "warnings": list(verdict.warnings),
        "checks": [
            {"name": check.name, "passed": check.passed, "detail": check.detail}
            for check in verdict.checks
        ],
    }


def _say_verdict(verdict: "Verdict") -> None:
    from taciturn.accounting.certificate import rounded_up
    from taciturn.accounting.ledger import Status
    from taciturn.release.facts import from_ratings

    rows = [
        (check.name, "ok" if check.passed else "FAILED", check.detail) for check in verdict.checks
    ]
    say(table(rows))
    if verdict.release is None:
        return
    found, facts = verdict.release.certificate, verdict.release.facts
    if found.epsilon is not None:
        certified = "" if found.status is Status.PROVEN else f", {found.status}"
        say(
            f"unit {found.unit}{certified}: epsilon = {rounded_up(found.epsilon, 6)} "
            f"at delta = {found.delta:g}, mu = {rounded_up(found.mu or 0.0, 6)}"
        )
    if facts.ids_from_ratings:
        say(from_ratings(facts.ids_from_ratings))
    for each in found.public_inputs:
        say(f"not protected: {each.sentence}")


def keygen(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File for the private key.")
    ] = Path("taciturn.key"),
    json: Json = False,
) -> None:
    """Generate a key pair for signing releases: FILE (private) and FILE.pub (public)."""
    from taciturn.release.sign import make_keys

    private, public = make_keys(output)
    if json:
        emit_json({"private_key": str(private), "public_key": str(public)})
        return
    say(f"private key: {private} (keep it secret)")
    say(f"public key:  {public} (share it)")


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
            help="Table of items not to recommend, with an item and optionally a user column. With "
            "a user column, items of this user are also reasons for others: all of them, or those "
            "rated above the middle of the scale and at least at the user's median. Default: "
            "exclude nothing.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Order of the list. interest: what the user is likely to turn to and like, by "
            "interest and predicted rating together. rating: the predicted rating alone, also for "
            "items that hardly anyone turns to. Default: interest if the release has it.",
        ),
    ] = None,
    popularity_weight: Annotated[
        float,
        number_option(
            "Weight of popularity in the order by interest, 0 to 1. Below 1, lists have fewer "
            "popular items; 0 leaves taste alone."
        ),
    ] = 1.0,
    json: Json = False,
) -> None:
    """Recommend items to a user, with the reason for each.

    Pass --user for a user in the release, or --ratings for a user who is not in it. Items in
    --ratings are not recommended. The reason for an item is up to two similar items that the user
    liked, as far as these are known, or else the largest part of its score.
    """
    found = service.recommend(recipient, count, exclude, by, popularity_weight)
    head = {"user_id": found.id} | personalisation(is_personalised=found.is_personalised)
    _show(head, found, service, json)


@with_options(service=service_options)
def similar(
    *,
    service: "Service",
    item: Annotated[str, typer.Option(metavar="ID", help="Item to find similar items for.")],
    count: HowMany = 10,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="Part of the profiles to compare. interest: the same users turn to both items. "
            "rating: the same users like both. Default: interest if the release has interest "
            "factors, else rating.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the items with the most similar profiles; scores are cosine similarities."""
    found = service.similar(item, count, by)
    head: dict[str, Any] = {"item_id": found.id}
    if found.id is not None and service.has_titles:
        head["title"] = service.title(found.id)
    if not json:
        say(f"compared by {found.by} factors:")
    _show(head, found, service, json)


@with_options(recipient=recipient_options, service=service_options)
def predict(
    *,
    service: "Service",
    item: Annotated[str, typer.Option(metavar="ID", help="Item to predict a rating for.")],
    recipient: "Recipient",
    json: Json = False,
) -> None:
    """Predict a rating, clipped to the scale.

    If the release has variances, with ± its standard deviation and the probability of each star.
    """
    found = service.predict(recipient, item)
    if json:
        document = asdict(found)
        for name in ("deviation", "probabilities"):
            if document[name] is None:
                del document[name]
        if not service.has_titles:
            del document["title"]
        emit_json(document)
        return
    deviation = "" if found.deviation is None else f" ± {found.deviation:.3f}"
    title = f"  {found.item_id}  {found.title or ''}" if service.has_titles else ""
    say(printable(f"{found.rating:.3f}{deviation}{title}".rstrip()))
    if found.probabilities is not None:
        say(table([(value, f"{each:.1%}", "") for value, each in found.probabilities.items()]))


def export(
    release: ReleaseFolder,
    to: Annotated[str, typer.Option(metavar="FORM", help="Format: parquet, npz, or ann.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="PATH", help="Output file or folder; must not exist."
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Order of an ann index, as of taciturn recommend: interest or rating. Default: "
            "interest if the release has it.",
        ),
    ] = None,
    public_key: PublicKeyOption = None,
    json: Json = False,
) -> None:
    """Export a release to a format that other programs read.

    ann is an index for approximate nearest neighbours and needs the extra `ann`.
    """
    from taciturn._internal import validate
    from taciturn.recommend.export import Form, export_release
    from taciturn.release.read import load_release

    form = validate.choice("--to", to, Form)
    facts = export_release(load_release(release, public_key), form, output, by)
    if json:
        emit_json({"output": str(output)} | facts)
        return
    say(f"exported to {output}")
    say(table([(name.replace("_", " "), "", str(fact)) for name, fact in facts.items()]))


def _show(head: dict[str, Any], found: "Listing", service: "Service", json: bool) -> None:
    """Print a ranked list, with titles if a table of them was given, and reasons if it has any."""
    rows = [asdict(each) for each in found.items]
    if json:
        left_out = {"by"} if service.has_titles else {"by", "title"}
        items = [
            {
                name: row[name]
                for name in row
                if name not in left_out
                and not (row["reason"] is None and name in ("because", "reason"))
            }
            for row in rows
        ]
        weight = {"popularity_weight": found.popularity_weight}
        if found.popularity_weight is None:
            weight = {}
        emit_json(head | {"by": found.by, **weight, "items": items})
        return
    ids = [printable(str(row["item_id"])) for row in rows]
    width = max(map(len, ids), default=0)
    names = [
        f"{each:<{width}}  {printable(row['title'] or '')}".rstrip()
        for each, row in zip(ids, rows, strict=True)
    ]
    width = max(map(len, names), default=0)
    lines = [
        (
            f"{row['rank']}.",
            f"{row['score']:.3f}",
            f"{name:<{width}}  {printable(row['reason'] or '')}",
        )
        for row, name in zip(rows, names, strict=True)
    ]
    say(table(lines) if lines else "no items to show")
