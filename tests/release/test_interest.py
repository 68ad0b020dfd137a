"""Interest in a release: round trip, schema, and damage."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.parquet as pq
import pytest

from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Floats, Profiles
from taciturn.recommend.serve import Recommender
from taciturn.release import bundle
from taciturn.release.facts import NUMBER_MAX, WIDTH_MAX
from taciturn.release.read import load_release
from taciturn.release.tables import profiles_to_frame, table_bytes
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut
from tests.model.helpers import INTEREST
from tests.narrow import present
from tests.release.helpers import copy, reseal, write_small, write_with_interest

Rows = npt.NDArray[np.float64]

COLUMNS = ("bias", "profile", "interest")

SCHEMA = Path(bundle.__file__).parents[1] / "schemas" / "release.schema.json"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interest") / "release"
    write_with_interest(folder)
    return folder


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / bundle.CERTIFICATE).read_text())
    return found


def forge(folder: Path, interest: object) -> None:
    """Write other facts about interest; None leaves them out."""
    stated = document(folder)
    stated["facts"]["interest"] = interest
    if interest is None:
        del stated["facts"]["interest"]
    text = json.dumps(stated).replace("Infinity", "1e999")
    (folder / bundle.CERTIFICATE).write_text(text)
    reseal(folder)


@pytest.mark.parametrize("columns", [1, 4])
def test_interest_survives_a_release_bit_for_bit(tmp_path: Path, columns: int) -> None:
    fit = write_with_interest(tmp_path / "r", columns)
    found = load_release(tmp_path / "r").model
    assert found.interest == INTEREST and found.interest_count == columns
    for one, two in (
        (found.user_profiles, fit.model.user_profiles),
        (found.item_profiles, fit.model.item_profiles),
    ):
        assert present(one.interests).dtype == np.float32
        assert np.array_equal(present(one.interests), present(two.interests))
    users = fit.model.user_profiles.ids
    assert Recommender(found).recommend(users, 3).equals(Recommender(fit).recommend(users, 3))
    assert verify_release(tmp_path / "r").passed


def test_items_alone_carry_interest_for_users_who_fold_in(tmp_path: Path) -> None:
    fit = write_with_interest(tmp_path / "r", users_out=UsersOut.NONE)
    found = load_release(tmp_path / "r").model
    assert found.users is None and found.interest == INTEREST
    item = fit.model.item_profiles.ids[2]
    expected = fit.model.fold_in({item: 5.0}).interest
    assert np.array_equal(present(found.fold_in({item: 5.0}).interest), present(expected))


def test_facts_follow_the_schema_and_state_the_parameters(release: Path) -> None:
    schema, stated = json.loads(SCHEMA.read_text()), document(release)
    jsonschema.validate(stated, schema)
    assert stated["facts"]["interest"] == asdict(INTEREST) | {"columns": 4}
    assert schema["properties"]["facts"]["properties"]["interest"]["properties"]["columns"] == {
        "description": "Number of entries of an interest vector, popularity first.",
        "type": "integer",
        "minimum": 1,
        "maximum": WIDTH_MAX,
    }


def test_other_readers_find_the_column_after_all_others(release: Path) -> None:
    model = load_release(release).model
    for name, profiles in (("items", model.item_profiles), ("users", model.user_profiles)):
        file = release / f"{name}.parquet"
        table = pq.ParquetFile(file).read(use_threads=False)
        assert table.column_names == [f"{name[:-1]}_id", "bias", "profile", "interest"]
        numbers = table["interest"].combine_chunks().flatten().to_numpy()
        assert np.array_equal(numbers.reshape(-1, 4), present(profiles.interests))
        frame = profiles_to_frame(profiles, f"{name[:-1]}_id")
        assert pl.read_parquet(file)["interest"].to_list() == frame["interest"].to_list()


def read(folder: Path, axis: str) -> tuple[list[int], Rows, Rows, Rows]:
    """Ids, biases, profiles and interest vectors of a table, in 64-bit floats."""
    table = pq.ParquetFile(folder / f"{axis}s.parquet").read(use_threads=False)
    ids = table[f"{axis}_id"].to_pylist()
    rows = (np.array(table[name].to_pylist(), dtype=np.float64) for name in COLUMNS)
    return ids, *rows


def test_lists_follow_the_formulas_of_the_format(release: Path) -> None:
    """As docs/reference/release-format.md states them, from the files alone."""
    facts = document(release)["facts"]
    weight, alpha, ridge = (facts["interest"][name] for name in asdict(INTEREST))
    ids, biases, profiles, vectors = read(release, "item")
    users, _, user_profiles, user_vectors = read(release, "user")
    recommender, count = Recommender(load_release(release)), len(ids)
    table = recommender.recommend(users, count)
    found = {(user, item): score for user, item, score, _ in table.iter_rows()}
    for row, user in enumerate(users):
        scores = vectors @ user_vectors[row] + weight * (biases + profiles @ user_profiles[row])
        assert [found[user, item] for item in ids] == pytest.approx(
            scores - scores.mean(), abs=1e-4
        )
    seen = [0, 3]
    total = ridge * (len(seen) + alpha * count)
    system = vectors[seen].T @ vectors[seen] + alpha * vectors.T @ vectors + total * np.eye(4)
    y = np.linalg.solve(system, vectors[seen].sum(axis=0))
    y /= (vectors @ y).std()
    mine = recommender.fold_in({ids[row]: 4.0 for row in seen})
    assert present(mine.interest) == pytest.approx(y, rel=1e-4)


GOOD = asdict(INTEREST) | {"columns": 4}
BROKEN: list[object] = [
    {},
    [],
    "interest",
    GOOD | {"more": 1},
    *({name: GOOD[name] for name in GOOD if name != left_out} for left_out in GOOD),
    *(
        GOOD | {name: number}
        for name in asdict(INTEREST)
        for number in (0, -1.0, "1", None, True, float("inf"), [1.0])
    ),
    *(GOOD | {"columns": number} for number in (0, -1, 4.0, "4", None, True, WIDTH_MAX + 1)),
]


@pytest.mark.parametrize("interest", BROKEN, ids=str)
def test_impossible_parameters_are_refused(release: Path, tmp_path: Path, interest: object) -> None:
    forged = copy(release, tmp_path / "r")
    forge(forged, interest)
    with pytest.raises(InvalidDocument):
        load_release(forged)
    assert not verify_release(forged).passed
    text = (forged / bundle.CERTIFICATE).read_text()
    # JSON Schema counts 4.0 as a whole number, and JSON has no infinity.
    if "1e999" not in text and "4.0" not in text.partition('"interest"')[2]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document(forged), json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("name", asdict(INTEREST))
def test_a_parameter_that_is_too_large_is_refused(release: Path, tmp_path: Path, name: str) -> None:
    forged = copy(release, tmp_path / "r")
    forge(forged, GOOD | {name: NUMBER_MAX})
    assert getattr(load_release(forged).model.interest, name) == NUMBER_MAX
    forge(forged, GOOD | {name: np.nextafter(NUMBER_MAX, np.inf)})
    with pytest.raises(InvalidDocument, match="facts in certificate.json"):
        load_release(forged)


@pytest.mark.parametrize("interest", [None, *(GOOD | {"columns": number} for number in (1, 3, 5))])
def test_facts_of_another_width_are_refused(
    release: Path, tmp_path: Path, interest: object
) -> None:
    forged = copy(release, tmp_path / "r")
    forge(forged, interest)
    with pytest.raises(InvalidDocument, match="as a release has it"):
        load_release(forged)


def test_stated_interest_without_a_column_is_refused(tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    forge(tmp_path / "r", GOOD)
    with pytest.raises(InvalidDocument, match="as a release has it"):
        load_release(tmp_path / "r")


def changed(numbers: Floats | None, number: float) -> Floats:
    """The same numbers but for the last one."""
    copied = present(numbers).copy()
    copied.flat[-1] = number
    return copied


NOT_FINITE = "a number that is not finite or is too large"
LAYOUT = "as a release has it"


@pytest.mark.parametrize("axis", ["item", "user"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda p: replace(p, interests=changed(p.interests, np.nan)), NOT_FINITE),
        (lambda p: replace(p, interests=changed(p.interests, np.inf)), NOT_FINITE),
        (lambda p: replace(p, interests=changed(p.interests, -1e15)), NOT_FINITE),
        (lambda p: replace(p, interests=changed(p.interests, 1e30)), NOT_FINITE),
        (lambda p: replace(p, interests=p.interests[:, :3]), LAYOUT),
        (lambda p: replace(p, interests=np.hstack([p.interests, p.interests])), LAYOUT),
        (lambda p: replace(p, interests=None), LAYOUT),
    ],
)
def test_damaged_interest_vectors_are_refused(
    release: Path,
    tmp_path: Path,
    axis: str,
    damage: Callable[[Profiles], Profiles],
    words: str,
) -> None:
    forged = copy(release, tmp_path / "r")
    profiles = getattr(load_release(forged).model, f"{axis}_profiles")
    (forged / f"{axis}s.parquet").write_bytes(table_bytes(damage(profiles), f"{axis}_id"))
    reseal(forged)
    with pytest.raises(InvalidDocument, match=words):
        load_release(forged)
