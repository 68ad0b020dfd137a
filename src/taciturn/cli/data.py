"""`taciturn data`: named datasets, and owner-only statistics of a source."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, say, table
from taciturn.cli.options import Json, with_options
from taciturn.cli.progress import bytes_bar
from taciturn.cli.reading import Source, read, reading_options

if TYPE_CHECKING:
    from taciturn.data.options import ReadingOptions

app = typer.Typer(
    no_args_is_help=True,
    help="Download public datasets, and inspect your own ratings.",
    epilog="Example: taciturn data get ml-100k",
)


@app.command("list", epilog="Example: taciturn data list --json")
def list_sets(json: Json = False) -> None:
    """List the named datasets and whether their archives are downloaded."""
    from taciturn.data.named import NAMED_SETS, data_folder
    from taciturn.data.synthetic import PRESETS

    data_folder()  # raises if TACITURN_DATA is wrong
    sets = [
        {
            "name": each.name,
            "scale": str(each.scale),
            "about": each.about,
            "variants": list(each.variants),
            "here": _is_here(each.name),
            "url": each.url,
        }
        for each in NAMED_SETS.values()
    ]
    presets = [
        {"name": f"synthetic:{name}", "ratings": size.ratings} for name, size in PRESETS.items()
    ]
    if json:
        emit_json({"sets": sets, "synthetic": presets})
        return
    rows = [(str(s["name"]), "downloaded" if s["here"] else "", str(s["about"])) for s in sets]
    rows += [
        (str(p["name"]), "generated", f"about {p['ratings']:,} synthetic ratings") for p in presets
    ]
    say(table(rows))


@app.command(epilog="Example: taciturn data get ml-100k")
def get(
    name: Annotated[str, typer.Argument(help="Name of a dataset; see taciturn data list.")],
    json: Json = False,
) -> None:
    """Download a named dataset into the cache, verify it, and show its licence.

    Resumes an interrupted download.
    """
    from taciturn.data.named import locate, named_set

    known = named_set(name.partition(":")[0])
    note(known.licence)
    with bytes_bar(known.archive) as progress:
        archive = locate(name, progress=progress)
    if json:
        emit_json({"name": known.name, "archive": str(archive), "bytes": archive.stat().st_size})
        return
    say(f"{known.name} is at {archive}")


@app.command(epilog="Example: taciturn data info ratings.csv --scale 1:5")
@with_options(reading=reading_options)
def info(
    source: Source,
    reading: "ReadingOptions",
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Also count the ratings of this user.")
    ] = None,
    item: Annotated[
        str | None, typer.Option(metavar="ID", help="Also count the ratings of this item.")
    ] = None,
    json: Json = False,
) -> None:
    """Show exact statistics of a source; owner-only, not for publication."""
    from taciturn.data.describe import describe

    facts = describe(read(source, reading), user=user, item=item)
    if json:
        emit_json({"source": source, "view": "owner"} | facts)
        return
    say(f"{source}: exact statistics (owner-only, not for publication)")
    say(table([(name.replace("_", " "), "", _shown(fact)) for name, fact in facts.items()]))


def _is_here(name: str) -> bool:
    from taciturn.data.named import locate
    from taciturn.errors import TaciturnError

    try:
        return locate(name, fetch=False, check=False).is_file()
    except TaciturnError:
        return False


def _shown(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{key}: {value:,}" for key, value in fact.items())
    if isinstance(fact, float):
        return f"{fact:.4g}"
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
