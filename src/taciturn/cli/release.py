"""`taciturn verify`, `keygen`, `recommend`, `predict`, `similar`, `export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, printable, say, table, warn
from taciturn.cli.options import Json, count_option, number_option

if TYPE_CHECKING:
    from taciturn.model.fold_in import FoldedIn
    from taciturn.recommend.serve import Recommender
    from taciturn.release.bundle import Release

OwnOption = Annotated[
    Path | None,
    typer.Option(
        "--ratings",
        metavar="FILE",
        help="Somebody's own ratings instead of a user, a table with item and rating columns: "
        "stays here, and is never in a release.",
    ),
]
ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.")]
ItemsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Item profiles of your own: Parquet with item_id, profile and perhaps bias, or .npy.",
    ),
]
ItemIdsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The ids of the rows of an .npy file: a table.")
]
TitlesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A table with an id and a title column.")
]


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


def recommend(
    release: ReleaseFolder,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Whom to recommend to.")] = None,
    ratings: OwnOption = None,
    count: Annotated[int, count_option("How many items.", "-k", "--count")] = 10,
    items: ItemsOption = None,
    item_ids: ItemIdsOption = None,
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
    import polars as pl

    from taciturn.tables.columns import column_of
    from taciturn.tables.ids import parse_id
    from taciturn.tables.names import ITEM, USER
    from taciturn.tables.whole import id_column, read_table

    _check_whom(user, ratings)
    loaded, recommender = _recommender(release, items, item_ids)
    if ratings is not None:
        own, folded = _folded(recommender, ratings)
        seen = list(own)
        if exclude is not None:
            seen += id_column(read_table(exclude), ITEM, str(exclude)).to_list()
        best = recommender.recommend_profile(folded.bias, folded.factors, count, exclude=seen)
        rows = [{"item_id": each.item_id, "score": each.score, "rank": each.rank} for each in best]
        _show({"user_id": None}, rows, recommender, titles, json)
        return
    user = user or ""
    users = loaded.model.users
    identifier = parse_id(user, users.ids) if users is not None else user
    pairs = None
    if exclude is not None:
        frame = read_table(exclude)
        unwanted = id_column(frame, ITEM, str(exclude))
        owner = column_of(frame, USER)
        if owner is None:
            owner = pl.Series([identifier] * len(frame))
        pairs = pl.DataFrame({"user_id": owner, "item_id": unwanted})
    found = recommender.recommend([identifier], count, exclude=pairs)
    rows = [
        {"item_id": item, "score": score, "rank": rank}
        for item, score, rank in found.select("item_id", "score", "rank").iter_rows()
    ]
    _show({"user_id": identifier}, rows, recommender, titles, json)


def similar(
    release: ReleaseFolder,
    item: Annotated[str, typer.Option(metavar="ID", help="The item to compare with.")],
    count: Annotated[int, count_option("How many items.", "-k", "--count")] = 10,
    items: ItemsOption = None,
    item_ids: ItemIdsOption = None,
    titles: TitlesOption = None,
    json: Json = False,
) -> None:
    """Show the items whose profiles are most alike; scores are cosines."""
    from taciturn.tables.ids import parse_id

    _, recommender = _recommender(release, items, item_ids)
    identifier = parse_id(item, recommender.item_ids)
    rows = [
        {"item_id": each.item_id, "score": each.score, "rank": each.rank}
        for each in recommender.similar(identifier, count)
    ]
    _show({"item_id": identifier}, rows, recommender, titles, json)


def predict(
    release: ReleaseFolder,
    item: Annotated[str, typer.Option(metavar="ID", help="Of what.")],
    user: Annotated[str | None, typer.Option(metavar="ID", help="Whose rating.")] = None,
    ratings: OwnOption = None,
    items: ItemsOption = None,
    item_ids: ItemIdsOption = None,
    json: Json = False,
) -> None:
    """Predict a rating, cut to the scale; with its standard deviation, if the release tells it."""
    from taciturn.tables.ids import parse_id

    _check_whom(user, ratings)
    loaded, recommender = _recommender(release, items, item_ids)
    what = parse_id(item, recommender.item_ids)
    found: dict[str, Any]
    if ratings is not None:
        _, mine = _folded(recommender, ratings)
        rating = recommender.predict_profile(mine.bias, mine.factors, what)
        found = {"user_id": None, "item_id": what, "rating": rating}
    else:
        given = user or ""
        users = loaded.model.users
        who = parse_id(given, users.ids) if users is not None else given
        (rating,) = recommender.predict([who], [what])
        found = {"user_id": who, "item_id": what, "rating": float(rating)}
    if ratings is None and recommender.has_deviations:
        found["deviation"] = float(recommender.deviations([who], [what])[0])
    if json:
        emit_json(found)
    elif "deviation" in found:
        say(f"{found['rating']:.3f} ± {found['deviation']:.3f}")
    else:
        say(f"{found['rating']:.3f}")


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


def _recommender(
    release: Path, items: Path | None, item_ids: Path | None
) -> "tuple[Release, Recommender]":
    from taciturn.recommend.serve import Recommender
    from taciturn.recommend.tables import read_items
    from taciturn.release.read import load_release

    loaded = load_release(release)
    own = read_items(items, loaded.model.factor_count, item_ids) if items is not None else None
    return loaded, Recommender(loaded, items=own)


def _check_whom(user: str | None, ratings: Path | None) -> None:
    from taciturn.errors import InvalidParameter

    if (user is None) == (ratings is None):
        lack = "not both" if user is not None else "one of both"
        raise InvalidParameter(
            f"say whom it is for: --user ID, or --ratings FILE of theirs; {lack}"
        )


def _folded(recommender: "Recommender", path: Path) -> "tuple[dict[Any, float], FoldedIn]":
    """Return somebody's own ratings and the profile that follows; say what is left out."""
    from taciturn.errors import InvalidDocument
    from taciturn.recommend.tables import own_ratings

    own = own_ratings(path, recommender.item_ids)
    known = set(recommender.item_ids.to_list()) & own.keys()
    if not known:
        raise InvalidDocument(f"the release has none of the items in {path}")
    if len(known) < len(own):
        note(f"{len(own) - len(known)} of {len(own)} items in {path} are not in the release")
    return own, recommender.fold_in(own)


def _show(
    head: dict[str, Any],
    rows: list[dict[str, Any]],
    recommender: "Recommender",
    titles: Path | None,
    json: bool,
) -> None:
    from taciturn.recommend.tables import read_titles

    names = read_titles(titles, recommender.item_ids) if titles is not None else {}
    if titles is not None:
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
