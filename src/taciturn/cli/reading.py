"""Source argument and reading options, shared by all commands that read ratings."""

from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import note
from taciturn.cli.options import number_option
from taciturn.cli.progress import bytes_bar

if TYPE_CHECKING:
    from taciturn.data.options import ReadingOptions
    from taciturn.data.ratings import Ratings

Source = Annotated[
    str,
    typer.Argument(
        help="Ratings: a file (CSV, TSV, Parquet), a folder or glob of Parquet files, a named "
        "dataset such as ml-1m or netflix:paper, or synthetic:100k."
    ),
]


ItemFeaturesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|builtin",
        help="Public item features, which als uses: a table (CSV, TSV, Parquet) with item_id and "
        "columns of categories, lists of categories separated by |, numbers or vectors; or "
        "builtin, the genres of a named dataset such as ml-1m. No rating may affect them: no "
        "average ratings, no popularity, no tags of these users. Default: none.",
    ),
]

PublicRatingsOption = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE",
        help="Public ratings of the same items, to which als shrinks: a file on the scale of the "
        "ratings, or a named dataset such as ml-latest-small. They must be published already. A "
        "user who is in both is not protected in the public ones. Default: none.",
    ),
]


def reading_options(
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH[:STEP]",
            help="Rating scale, such as 1:5; never inferred from the ratings. Default: the known "
            "scale of a named dataset.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="user=…,item=…,rating=…",
            help="Column names. Default: found by common names such as user_id.",
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTER", help="Separator of a text file. Default: found in the header line."
        ),
    ] = None,
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="error|last|mean", help="For (user, item) pairs rated more than once."
        ),
    ] = "error",
    missing: Annotated[
        str, typer.Option(metavar="error|drop", help="For rows with a missing field.")
    ] = "error",
    outside: Annotated[
        str, typer.Option(metavar="error|clip|drop", help="For ratings outside the scale.")
    ] = "error",
    item_id_type: Annotated[
        str | None,
        typer.Option(
            metavar="text|int",
            help="Type of the item ids in a text file. Default: text. User ids in text files are "
            "always text; Parquet files keep their types.",
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header",
            help="The text file has no header line; its columns are user, item, rating and "
            "optionally timestamp, in this order. Needs --separator.",
        ),
    ] = False,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Encoding of the text file, such as latin-1 or utf-16. Default: UTF-8; never "
            "detected.",
        ),
    ] = None,
    decimal_comma: Annotated[
        bool,
        typer.Option(
            "--decimal-comma",
            help="The ratings in the text file are written with a decimal comma, as in 4,5. "
            "Default: a decimal point.",
        ),
    ] = False,
    max_expansion: Annotated[
        float | None,
        number_option(
            "Maximum unpacked size of a compressed text file or a Parquet file, in multiples of "
            "its own size; up to 64 MiB are always accepted. Default: 100."
        ),
    ] = None,
) -> "ReadingOptions":
    """Options for reading the source."""
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
        encoding=encoding,
        decimal_comma=decimal_comma,
        max_expansion=max_expansion,
    )


def read(source: str, reading: "ReadingOptions") -> "Ratings":
    """Ratings of a source; a download shows a progress bar and the licence."""
    from taciturn.data import load_source

    with bytes_bar(source) as progress:
        return load_source(source, reading, progress=progress, licence=note)
