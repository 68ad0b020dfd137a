"""Table readers with roles of columns that the caller defines."""

from pathlib import Path

import polars as pl
import pytest

import taciturn.tables
from taciturn.errors import InvalidDocument
from taciturn.tables.columns import Role, column_of
from taciturn.tables.files import TableFile
from taciturn.tables.frames import to_frame

PLACE = Role(name="place", aliases=("city", "town"))
HEIGHT = Role(name="height", aliases=("height",))
NOTE = Role(name="note", aliases=("note",), is_required=False)
ROLES = (PLACE, HEIGHT, NOTE)


def test_any_roles_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Height;Town\n520;Munich\n34;Berlin\n")
    file = TableFile(tmp_path / "a.csv", ROLES)
    assert file.is_text and list(file.places) == ["place", "height"]
    piece = pl.concat(file.pieces(["place", "height"], {"height": pl.Int64}))
    assert piece.rows() == [("Munich", 520), ("Berlin", 34)]
    frame = to_frame((["Munich"], [520]), ROLES)
    assert frame.columns == ["place", "height"]
    assert column_of(frame, NOTE) is None


def test_errors_name_the_roles_that_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(InvalidDocument, match="columns for place and height"):
        TableFile(tmp_path / "a.csv", ROLES)
    with pytest.raises(InvalidDocument, match="no column looks like the place"):
        to_frame(pl.DataFrame({"x": [1]}), ROLES)


def test_the_first_bytes_of_a_file_without_a_header_are_data(tmp_path: Path) -> None:
    """A first id that begins like a Parquet file has no effect."""
    (tmp_path / "a.csv").write_text("PAR1,520\nBerlin,34\n")
    file = TableFile(tmp_path / "a.csv", ROLES, separator=",", header=False)
    assert pl.concat(file.pieces(["place"]))["place"].to_list() == ["PAR1", "Berlin"]


def test_only_the_vocabulary_mentions_ratings() -> None:
    folder = Path(taciturn.tables.__file__).parent
    mentioned = {
        file.name
        for file in folder.glob("*.py")
        if "rating" in file.read_text(encoding="utf-8").lower()
    }
    assert mentioned == {"__init__.py", "names.py", "whole.py"}
