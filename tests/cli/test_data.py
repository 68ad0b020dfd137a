"""`taciturn data` end to end."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Command


def test_list_shows_every_named_set(taciturn: Command) -> None:
    sets = {
        each["name"]: each for each in json.loads(taciturn("data", "list", "--json").stdout)["sets"]
    }
    assert list(sets) == [
        *("ml-100k", "ml-1m", "ml-10m", "ml-20m", "ml-25m", "ml-latest-small"),
        *("netflix", "anime"),
    ]
    assert sets["ml-1m"]["scale"] == "1:5:1" and sets["anime"]["url"] is None
    assert "synthetic:100m" in taciturn("data", "list").stdout


def test_info_shows_exact_statistics_of_a_file(taciturn: Command, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("who,what,how\nann,x,5\nbob,x,1\nann,y,2\n")
    call = ["data", "info", file, "--scale", "1:5:1", "--columns", "user=who,item=what,rating=how"]
    facts = json.loads(taciturn(*call, "--json", "--user", "ann", "--item", "y").stdout)
    assert facts["view"] == "owner"
    assert (facts["ratings"], facts["users"], facts["items"]) == (3, 2, 2)
    assert facts["mean"] == pytest.approx(8 / 3)
    assert facts["distribution"] == {"1": 1, "2": 1, "5": 1}
    assert facts["ratings_of_user"] == 2 and facts["ratings_of_item"] == 1
    shown = taciturn(*call)
    assert "exact statistics (owner-only, not for publication)" in shown.stdout


def test_ids_are_parsed_with_the_type_of_their_column(taciturn: Command) -> None:
    call = ["data", "info", "synthetic:10k", "--json"]
    assert json.loads(taciturn(*call, "--user", "7").stdout)["ratings_of_user"] > 0
    for user in ("seven", "0", "99999999999999999999999"):
        result = taciturn(*call, "--user", user)
        assert result.returncode == 2 and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["data", "info"],
        ["data", "info", "absent.csv"],
        ["data", "info", "absent.csv", "--scale", "1:5"],
        ["data", "info", "absent.parquet", "--scale", "1:5"],
        ["data", "info", "{file}", "--scale", "5:1"],
        ["data", "info", "{file}", "--scale", "1:2"],
        ["data", "info", "{file}", "--scale", "1:5", "--columns", "user=absent"],
        ["data", "info", "{file}", "--scale", "1:5", "--duplicates", "all"],
        ["data", "info", "{file}", "--scale", "1:5", "--separator", "---"],
        ["data", "get", "nothing"],
        ["data", "info", "synthetic:7"],
    ],
)
def test_bad_input_gets_one_line(taciturn: Command, tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,2,3\n1,2,4\n")
    result = taciturn(*(argument.format(file=file) for argument in arguments))
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_an_absent_set_names_its_source(taciturn: Command, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TACITURN_DATA"}
    environment |= {"TACITURN_CACHE": str(tmp_path), "TACITURN_MIRROR": "http://127.0.0.1:9"}
    result = taciturn("data", "info", "anime", env=environment)
    assert result.returncode == 2 and "Kaggle" in result.stderr


@pytest.mark.slow
@given(st.binary(max_size=60), st.sampled_from(["csv", "parquet", "tsv", "csv.gz"]))
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_file_is_read_or_refused(
    taciturn: Command, tmp_path: Path, content: bytes, ending: str
) -> None:
    file = tmp_path / f"fuzz.{ending}"
    file.write_bytes(content)
    result = taciturn("data", "info", file, "--scale", "1:5", "--json")
    assert result.returncode in (0, 2) and "Traceback" not in result.stderr
    if result.returncode == 0:
        json.loads(result.stdout)
