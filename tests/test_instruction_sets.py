"""Choice of the instruction set of the kernels."""

import os
import re
import subprocess
import sys

import pytest

from taciturn import _core
from tests.instruction_sets import SETS, every_set, on_every_set, using

REFUSAL = f"this processor has no instruction set 'sse9'; choose one of {', '.join(SETS)}"


def in_environment(value: str | None) -> "subprocess.CompletedProcess[str]":
    """Import the core with a value of TACITURN_ISA, and print the instruction set in use."""
    environment = {name: each for name, each in os.environ.items() if name != "TACITURN_ISA"}
    return subprocess.run(
        [sys.executable, "-c", "from taciturn import _core; print(_core.instruction_set())"],
        env=environment if value is None else environment | {"TACITURN_ISA": value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_processor_has_the_portable_set_last() -> None:
    assert SETS[-1] == "portable" and set(SETS) <= {"avx512", "avx2", "portable"}
    assert len(set(SETS)) == len(SETS) and _core.instruction_set() in SETS


@every_set
def test_the_chosen_set_is_in_use(instruction_set: str) -> None:
    assert _core.instruction_set() == instruction_set


def test_a_choice_in_a_test_is_undone() -> None:
    before = _core.instruction_set()
    assert on_every_set(_core.instruction_set) == {name: name for name in SETS}
    with pytest.raises(KeyError), using(SETS[-1]):
        raise KeyError
    assert _core.instruction_set() == before


def test_an_unknown_set_is_refused() -> None:
    before = _core.instruction_set()
    with pytest.raises(ValueError, match=f"^{re.escape(REFUSAL)}$"):
        _core.use_instruction_set("sse9")
    for name in ("", "AVX2", "avx2 ", "avx"):
        with pytest.raises(ValueError, match="choose one of"):
            _core.use_instruction_set(name)
    assert _core.instruction_set() == before


@pytest.mark.parametrize("name", SETS)
def test_the_environment_chooses_a_set(name: str) -> None:
    assert in_environment(name).stdout == f"{name}\n"


@pytest.mark.parametrize("value", [None, ""])
def test_the_fastest_set_is_the_default(value: str | None) -> None:
    assert in_environment(value).stdout == f"{SETS[0]}\n"


def test_an_unknown_set_in_the_environment_is_refused() -> None:
    result = in_environment("sse9")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == f"ImportError: TACITURN_ISA: {REFUSAL}"


def test_the_header_of_a_test_run_names_the_instruction_sets(pytestconfig: pytest.Config) -> None:
    headers = pytestconfig.hook.pytest_report_header(
        config=pytestconfig, start_path=pytestconfig.rootpath
    )
    line = f"instruction set: {_core.instruction_set()} (supported: {', '.join(SETS)})"
    assert line in headers
