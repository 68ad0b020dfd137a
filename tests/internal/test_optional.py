"""Optional dependencies fail with the name of the extra."""

import sys
from pathlib import Path

import pytest

from taciturn._internal.optional import require
from taciturn.errors import MissingExtra


def test_an_installed_module_is_returned() -> None:
    assert require("json.decoder", extra="x") is sys.modules["json.decoder"]


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part"])
def test_the_error_for_a_missing_package_names_the_extra(module: str) -> None:
    with pytest.raises(MissingExtra, match=r"needs no_such_package.*pip install '\.\[plots\]'"):
        require(module, extra="plots")


def test_a_broken_package_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        require("broken_package", extra="plots")
