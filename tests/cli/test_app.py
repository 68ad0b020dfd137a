"""The command line: help, version, demo, doctor and exit codes."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

import taciturn as package
from taciturn import _core
from taciturn._internal import memory
from taciturn.cli import app
from taciturn.cli.start import INTERRUPTED
from tests.commands import MAIN
from tests.conftest import Command
from tests.instruction_sets import SETS, every_set
from tests.release.helpers import write_small

COMMANDS = [
    *("", "demo", "doctor", "budget", "budget paper", "budget compose", "budget calibrate"),
    *("train", "verify", "keygen", "recommend", "similar", "predict", "export"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(taciturn: Command, command: str) -> None:
    result = taciturn(*command.split(), "--help")
    assert result.returncode == 0 and result.stderr == ""
    if command not in ("", "budget"):
        assert "Example" in result.stdout


@pytest.mark.parametrize("command", ["", "budget"])
def test_no_command_shows_the_help(taciturn: Command, command: str) -> None:
    result = taciturn(*command.split())
    assert result.returncode == 2
    assert "Usage" in result.stdout + result.stderr


def test_the_version_is_printed(taciturn: Command) -> None:
    assert taciturn("--version").stdout == f"taciturn {package.__version__}\n"


@pytest.mark.slow
def test_the_demo_is_complete_and_quick(taciturn_process: Command) -> None:
    start = time.monotonic()
    result = taciturn_process("demo", timeout=120)
    assert time.monotonic() - start < 60
    assert result.returncode == 0 and result.stderr == ""
    for phrase in ("non-private", "owner-only", "Privacy certificate: proven", "user 42"):
        assert phrase in result.stdout


@pytest.mark.slow
def test_the_demo_writes_json_and_a_release(taciturn: Command, tmp_path: Path) -> None:
    document = json.loads(taciturn("demo", "--json", "-o", tmp_path / "release").stdout)
    assert document["certificate"]["status"] == "proven" and document["verified"]
    errors = document["rmse_test"]
    assert errors["non-private"] < errors["als"] < errors["bias"]
    assert len(document["items"]) == 5
    assert taciturn("verify", tmp_path / "release").returncode == 0


def test_doctor_describes_the_installation(taciturn: Command) -> None:
    document = json.loads(taciturn("doctor", "--json").stdout)
    assert document["taciturn"] == package.__version__
    assert document["packages"]["numpy"]
    assert document["compiler"] in taciturn("doctor").stdout


@every_set
def test_doctor_shows_the_instruction_sets(taciturn: Command, instruction_set: str) -> None:
    document = json.loads(taciturn("doctor", "--json").stdout)
    assert document["instruction_set"] == instruction_set
    assert document["instruction_sets"] == SETS
    shown = [" ".join(line.split()) for line in taciturn("doctor").stdout.splitlines()]
    assert f"instruction_set {instruction_set}" in shown
    assert f"instruction_sets {', '.join(SETS)}" in shown


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "doctor --json",
        "demo",
        "train ratings.csv --scale 1:5 --epsilon 1 -o release",
        "compare ratings.csv --scale 1:5 --epsilons 1 -o comparison",
        "data info ratings.csv --scale 1:5",
        "recommend release --user 1",
        "audit two-worlds",
    ],
)
def test_an_unknown_instruction_set_is_an_error_of_one_line(
    taciturn_process: Command, tmp_path: Path, command: str
) -> None:
    (tmp_path / "ratings.csv").write_text("user_id,item_id,rating\n1,1,3\n2,1,5\n")
    environment = os.environ | {"TACITURN_ISA": "sse9"}
    result = taciturn_process(*command.split(), cwd=tmp_path, env=environment)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: TACITURN_ISA: this processor has no instruction set 'sse9'; "
        f"choose one of {', '.join(SETS)}\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["ratings.csv"]


def test_an_unknown_instruction_set_is_not_mistaken_for_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise ImportError("TACITURN_ISA: no instruction set 'sse9'")

    monkeypatch.setattr(memory, "is_limited", lambda: True)
    monkeypatch.setattr(_core, "compiler", broken)
    assert app.run(["doctor"]) == 2
    assert capsys.readouterr().err == "error: TACITURN_ISA: no instruction set 'sse9'\n"


@pytest.mark.slow
def test_an_ascii_terminal_is_supported(taciturn_process: Command) -> None:
    arguments = "budget paper --epsilon-i 0.4 --delta-i 0.01 --iterations 300 --delta 1e-5".split()
    result = taciturn_process(*arguments, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0 and "R?nyi" in result.stdout


def test_a_full_disk_is_an_error_of_one_line(taciturn_process: Command) -> None:
    streams = {"capture_output": False, "stderr": subprocess.PIPE}
    with Path("/dev/full").open("w") as full:
        result = taciturn_process("doctor", stdout=full, **streams)
    assert result.returncode == 2
    assert result.stderr == "error: cannot write the output: No space left on device\n"


def test_an_internal_error_shows_its_class_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from taciturn.cli import doctor

    def broken(name: str) -> str:
        raise RuntimeError("a user's rating")

    monkeypatch.delenv("TACITURN_DEBUG", raising=False)
    monkeypatch.setattr(doctor, "_version", broken)
    assert app.run(["doctor"]) == 2
    assert capsys.readouterr().err.startswith("error: internal error (RuntimeError)")
    monkeypatch.setenv("TACITURN_DEBUG", "1")
    with pytest.raises(RuntimeError):
        app.run(["doctor"])


def test_an_interrupt_that_another_error_hides_is_one_line(
    monkeypatch: pytest.MonkeyPatch, taciturn: Command, tmp_path: Path
) -> None:
    """Closing the archive of a checkpoint fails if an interrupt came while it was written."""

    def interrupted(*arguments: object, **arrays: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("open writing handle")

    monkeypatch.setattr("taciturn.solvers.checkpoint.np.savez", interrupted)
    monkeypatch.setenv("TACITURN_DEBUG", "1")
    result = taciturn("train", "synthetic:10k", "--epsilon", 5, "-o", tmp_path / "release")
    assert result.returncode == INTERRUPTED
    advice, line = result.stderr.splitlines()[-2:]
    assert "--resume" in advice and line == "error: interrupted"


@pytest.mark.slow
def test_a_process_prints_and_exits_as_a_call_in_this_one(
    taciturn: Command, taciturn_process: Command, tmp_path: Path
) -> None:
    """For success, a failed check, invalid input and a warning, each on its stream."""
    write_small(tmp_path / "claimed", "paper")
    exotic = "budget paper --epsilon-i 2 --delta-i 0.01 --iterations 3 --delta 1e-5"
    for code, arguments in (
        (0, exotic.split()),
        (1, ["verify", tmp_path / "claimed"]),
        (2, ["train", "synthetic:10k", "--epsilon", "-1", "-o", tmp_path / "r"]),
        (2, ["--unknown"]),
    ):
        called, ran = taciturn(*arguments), taciturn_process(*arguments)
        assert ran.returncode == code
        assert (called.returncode, called.stdout, called.stderr) == (code, ran.stdout, ran.stderr)


def test_messages_have_no_control_characters(taciturn: Command) -> None:
    result = taciturn("budget", "compose", "\x1b[2J\nfake")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "\x1b" not in result.stderr


def test_a_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen([*MAIN, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=60)


def test_the_installed_script_runs(taciturn: Command) -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="taciturn")
    assert script.load() is __import__("taciturn.cli", fromlist=["main"]).main
