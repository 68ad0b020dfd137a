"""A signed release, for tests to copy and damage."""

from pathlib import Path

import pytest

from taciturn.release.sign import make_keys, read_private_key
from tests.release.helpers import write_small


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    private, _ = make_keys(folder / "key")
    write_small(folder / "release", key=read_private_key(private))
    return folder
