"""Settings and fixtures shared by all tests."""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from taciturn import _core
from taciturn.data import load
from taciturn.data.ratings import Ratings
from tests import commands, noise_keys
from tests.instruction_sets import SETS, using

settings.register_profile("taciturn", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("taciturn")

Command = Callable[..., commands.Finished]


def pytest_report_header() -> str:
    """Line about the instruction sets at the top of every test run."""
    return f"instruction set: {_core.instruction_set()} (supported: {', '.join(SETS)})"


@pytest.fixture(params=SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """Name of the instruction set in use; a test runs once on each."""
    with using(request.param):
        yield request.param


@pytest.fixture(scope="session", autouse=True)
def _noise_keys() -> Iterator[None]:
    """Trainings draw the same noise at every run of the tests."""
    with noise_keys.derived():
        yield


@pytest.fixture(scope="session")
def run_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of this test run, which all its processes share."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"


@pytest.fixture
def real_set(monkeypatch: pytest.MonkeyPatch, run_cache: Path) -> Callable[[str], Path]:
    """File of real data in TACITURN_DATA; skips the test and names the file if it is missing."""
    monkeypatch.setenv("TACITURN_CACHE", str(run_cache))

    def find(name: str) -> Path:
        file = Path(os.environ.get("TACITURN_DATA", "")) / name
        if "TACITURN_DATA" not in os.environ or not file.is_file():
            pytest.skip(f"needs {name} in the folder TACITURN_DATA")
        return file

    return find


ARCHIVES = {
    "ml-100k": "ml-100k.zip",
    "ml-1m": "ml-1m.zip",
    "netflix:paper": "netflix-slice.parquet",
}
"""Files of the real data that ratings are read from."""


@cache
def _read(source: str, folder: str) -> Ratings:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*official archive")
        return load(source)


@pytest.fixture
def real_ratings(real_set: Callable[[str], Path]) -> Callable[[str], Ratings]:
    """Real ratings, read once in each process of a test run."""

    def read(source: str) -> Ratings:
        return _read(source, str(real_set(ARCHIVES[source]).parent))

    return read


@pytest.fixture
def taciturn() -> Command:
    """Call the command line in this process."""
    return commands.call


@pytest.fixture
def taciturn_process() -> Command:
    """Run the installed command line in a process of its own, as a user would."""
    return commands.in_process
