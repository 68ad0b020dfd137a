"""The source of a command and the options to read it, declared once for all commands."""

from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import note
from taciturn.cli.progress import bytes_bar

if TYPE_CHECKING:
    from taciturn.data.options import ReadingOptions
    from taciturn.data.ratings import Ratings

Source = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, TSV, Parquet), a folder or glob of Parquet files, a named set such as "
        "ml-1m or netflix:paper, or synthetic:100k."
    ),
]


def reading_options(
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH[:STEP]",
            help="The declared scale, such as 1:5; known for named sets, never read off the data.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="user=…,item=…,rating=…", help="Names of columns that are not understood."
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="Separator of a text file. Default: found in the line with column names."
        ),
    ] = None,
    duplicates: Annotated[
        str, typer.Option(help="Pairs rated more than once: error, last or mean.")
    ] = "error",
    missing: Annotated[str, typer.Option(help="Rows that lack a field: error or drop.")] = "error",
    outside: Annotated[
        str, typer.Option(help="Ratings that are not on the scale: error, clip or drop.")
    ] = "error",
    item_id_type: Annotated[
        str | None,
        typer.Option(
            metavar="text|int",
            help="Type of the item ids in a text file. Default: text. User ids are always text "
            "there; Parquet files keep their types.",
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header",
            help="A text file without column names: user, item, rating and perhaps timestamp, in "
            "this order. Needs --separator.",
        ),
    ] = False,
) -> "ReadingOptions":
    """How a command reads its source."""
    from taciturn.data.options import ReadingOptions

    return ReadingOptions.of(
        scale=scale,
        columns=columns,
        separator=separator,
        duplicates=duplicates,
        missing=missing,
        outside=outside,
        item_id_type=item_id_type,
        header=False if no_header else None,
    )


def read(source: str, reading: "ReadingOptions") -> "Ratings":
    """Ratings of a source, with a bar for downloads and the licence if need be."""
    from taciturn.data import load_source

    with bytes_bar(source) as progress:
        return load_source(source, reading, progress=progress, licence=note)
