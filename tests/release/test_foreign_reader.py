"""The reader in the release format needs pyarrow and NumPy, and agrees with the library."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.model.fold_in import FoldedIn
from taciturn.recommend.serve import Recommender
from taciturn.release.pseudonyms import make_pseudonyms
from taciturn.release.read import load_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from tests.release.helpers import certificate, small_fit, write_small
from tests.solvers.helpers import BUDGET, random_ratings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "release-format.md"
pytestmark = pytest.mark.slow

BLOCKED = ("taciturn", "polars")

Listed = list[tuple[str, float]]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script of the page, behind lines that make some imports fail."""
    (body,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len([line for line in body.splitlines() if line.strip()]) <= 30
    file = tmp_path_factory.mktemp("reader") / "reader.py"
    blocked = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
    file.write_text(blocked + body, encoding="utf-8")
    return file


def run(reader: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(reader), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def check(
    reader: Path, arguments: list[object], expected: Listed, *, by_interest: bool = False
) -> None:
    result = run(reader, *arguments)
    assert result.returncode == 0, result.stderr
    rows = [line.rsplit(" ", 1) for line in result.stdout.splitlines()]
    found = [(item, float(score)) for item, score in rows]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    # By interest, scores are the same up to a constant.
    shift = scores[0] - max(score for _, score in expected) if by_interest else 0.0
    found = [(item, score - shift) for item, score in found]
    # All items are listed, since two with nearly equal scores may change places.
    assert len(expected) < 10 and dict(found) == pytest.approx(dict(expected), abs=2e-3)


def listed(recommender: Recommender, user: object) -> Listed:
    table = recommender.recommend([user], 10)  # type: ignore[list-item]
    return [(str(item), score) for item, score in table.select("item_id", "score").iter_rows()]


def folded(recommender: Recommender, mine: FoldedIn) -> Listed:
    best = recommender.recommend_profile(mine.bias, mine.factors, 10)
    return [(str(each.item_id), each.score) for each in best]


def test_the_blocked_modules_cannot_be_imported(reader: Path, tmp_path: Path) -> None:
    lines = reader.read_text(encoding="utf-8").splitlines()[0]
    for name in BLOCKED:
        (tmp_path / "x.py").write_text(f"{lines}\nimport {name}\n")
        assert "ModuleNotFoundError" in run(tmp_path / "x.py").stderr


def test_the_reader_lists_the_same_items_as_the_library(reader: Path, tmp_path: Path) -> None:
    write_small(tmp_path / "r", "als")
    recommender = Recommender(load_release(tmp_path / "r"))
    (tmp_path / "latest").symlink_to("r")
    check(reader, [tmp_path / "latest", 2], listed(recommender, 2), by_interest=True)


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
def test_the_reader_knows_pseudonyms_and_profiles_without_factors(
    reader: Path, tmp_path: Path
) -> None:
    fit = small_fit("bias")
    names = make_pseudonyms(fit.model.user_profiles.ids, b"a secret")
    write_release(
        fit,
        certificate(fit),
        tmp_path / "r",
        users_out=UsersOut.PSEUDONYMS,
        pseudonyms=names,
    )
    recommender = Recommender(load_release(tmp_path / "r"))
    name = names["pseudonym"][3]
    check(reader, [tmp_path / "r", name], listed(recommender, name))


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
def test_the_reader_folds_a_user_in(reader: Path, tmp_path: Path) -> None:
    fit = make_solver("als", unit="user", factors=2).fit(random_ratings(1, items=9), BUDGET)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    recommender = Recommender(load_release(tmp_path / "r"))
    first, second = (str(item) for item in recommender.item_ids[:2])
    mine: dict[int | str, float] = {first: 5.0, second: 1.0}
    (tmp_path / "mine.json").write_text(json.dumps({**mine, "no such item": 3}))
    expected = folded(recommender, recommender.fold_in(mine))
    check(reader, [tmp_path / "r", tmp_path / "mine.json"], expected)


def test_the_reader_refuses_a_changed_file(reader: Path, tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    with (tmp_path / "r" / "card.md").open("a") as card:
        card.write("!")
    assert "it was changed" in run(reader, tmp_path / "r", 1).stderr
