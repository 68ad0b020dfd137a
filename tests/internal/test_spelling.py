"""Options in messages, as the reader types them."""

from pathlib import Path
from typing import Any, cast

import pytest

from taciturn._internal.spelling import command_line, either, in_document, option, parameter
from taciturn.data import load
from taciturn.errors import InvalidDocument, InvalidParameter
from tests.conftest import Command
from tests.release.helpers import write_small

NAMES = {"count": ["--count", "-k"], "duplicates": ["--duplicates"]}


def test_python_and_the_command_line_spell_options_differently() -> None:
    assert option("duplicates", "last") == 'duplicates="last"'
    assert (
        option("header", False) == "header=False" and option("item_ids", "FILE") == "item_ids=FILE"
    )
    assert option("pseudonyms_out", "FILE", python="pseudonyms") == "pseudonyms=FILE"
    assert parameter("count") == "count" and either("--ratings FILE", "fold_in") == "fold_in"
    with command_line(lambda name: NAMES.get(name, [])):
        assert option("duplicates", "last") == "--duplicates last"
        assert option("header", False) == "--no-header" and option("resume", True) == "--resume"
        assert parameter("count") == "--count/-k" and parameter("sigma") == "sigma"
        assert either("--ratings FILE", "fold_in") == "--ratings FILE"
        with in_document():
            assert parameter("count") == "count"
        assert parameter("count") == "--count/-k"
    assert parameter("count") == "count"


def test_a_policy_is_named_as_it_was_typed(taciturn: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\n1,2,3\n1,2,4\n")
    with pytest.raises(InvalidDocument, match='pass duplicates="last" or duplicates="mean"'):
        load(tmp_path / "a.csv", scale="1:5")
    with pytest.raises(InvalidParameter, match="^duplicates must be one of error, last, mean"):
        load(tmp_path / "a.csv", scale="1:5", duplicates=cast("Any", "first"))
    info = "data", "info", tmp_path / "a.csv", "--scale", "1:5"
    assert "pass --duplicates last or --duplicates mean" in taciturn(*info).stderr
    refused = taciturn(*info, "--duplicates", "first").stderr
    assert refused.startswith("error: --duplicates must be one of error, last, mean")


def test_a_short_option_is_named(taciturn: Command, tmp_path: Path) -> None:
    """`-k 0` must not speak of a count that nobody typed."""
    write_small(tmp_path / "release")
    result = taciturn("recommend", tmp_path / "release", "--user", "1", "-k", "0")
    assert result.stderr.startswith("error: -k/--count must be a whole number")
