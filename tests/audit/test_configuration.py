"""Configuration of an audit, from options or from a release."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.units import Unit
from taciturn.audit.configuration import Configuration, choose_case, choose_targets
from taciturn.errors import InvalidParameter
from taciturn.solvers.solver import DELTA
from tests.release.helpers import write_small
from tests.solvers.helpers import random_ratings


def test_omitted_options_get_the_defaults_of_the_audit() -> None:
    solver, budget = Configuration().resolve(7.0, is_small=True)
    assert solver.name == "als" and solver.unit is Unit.RATING
    assert budget is not None and (budget.epsilon, budget.delta) == (7.0, DELTA)
    _, paper = Configuration(solver="paper").resolve(7.0, is_small=True)
    assert paper is not None and paper.epsilon == 1


def test_a_solver_that_supports_value_only_is_audited_under_value_with_a_remark() -> None:
    only = Configuration(solver="gradient")
    assert only.resolve(7.0, is_small=True)[0].unit is Unit.VALUE
    assert only.remark is not None and "gradient supports unit value only" in only.remark
    others = (Configuration(), Configuration(solver="bias"), replace(only, unit="value"))
    assert [each.remark for each in others] == [None, None, None]
    with pytest.raises(InvalidParameter, match='supports unit="value" only'):
        replace(only, unit="rating").resolve(7.0, is_small=True)


def test_a_release_is_audited_as_it_was_trained(tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    solver, budget = Configuration(like=tmp_path / "r").resolve(7.0, is_small=True)
    assert solver.name == "gradient"
    assert budget is not None and 9 < budget.epsilon <= 10


@pytest.mark.parametrize(
    "option", [{"solver": "als"}, {"delta": 1e-6}, {"options": {"factors": 2}}]
)
def test_other_options_beside_a_release_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="leave other options out"):
        Configuration(like=Path("r"), **option)


def test_a_bad_configuration_is_refused_before_ratings_are_read() -> None:
    def read() -> Any:
        raise AssertionError("the ratings were read")

    def targets(configuration: Configuration, read: Any) -> Any:
        return choose_targets(configuration, read, 100)

    choices: tuple[Callable[..., Any], ...] = (choose_case, targets)
    for choose in choices:
        with pytest.raises(InvalidParameter, match="must be one of"):
            choose(Configuration(solver="magic"), read)
        with pytest.raises(InvalidParameter, match="makes no privacy claim"):
            choose(Configuration(solver="non-private"), read)


def test_a_rating_can_be_chosen_in_real_data_only() -> None:
    ratings = random_ratings(3, users=8, items=6)
    assert choose_case(Configuration(), lambda: ratings).pair.datasets[0] is ratings
    with pytest.raises(InvalidParameter, match="--user, --item and --to"):
        choose_case(Configuration(), user="1")
    with pytest.raises(InvalidParameter, match="without data"):
        choose_targets(Configuration(), None, 10**6)
