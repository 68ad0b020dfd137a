"""The list of commands, which `taciturn --help` prints without importing them."""

import subprocess
import sys

import pytest

from taciturn.cli import app, overview


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]])
def test_the_overview_equals_the_help_of_the_whole_command_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = app.run(arguments)
    whole = capsys.readouterr()
    assert overview.run_overview(arguments) == code
    assert capsys.readouterr() == whole


def test_the_overview_imports_no_command() -> None:
    program = (
        "import sys\nfrom taciturn.cli.start import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n"
        "    print(*(name for name in sys.modules if name.startswith('taciturn.cli.')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = finished.stdout.splitlines()[-1].split()
    assert "taciturn.cli.overview" in loaded
    assert not {f"taciturn.cli.{name}" for name in ("app", *overview.COMMANDS)} & set(loaded)
