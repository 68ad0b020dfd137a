"""The training loop runs scheduled queries only and can be observed, interrupted and resumed."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import ExactRelease
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import BudgetExceeded, InvalidParameter, NoiseReuse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import Released
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.bias import BiasAlgorithm
from taciturn.solvers.checkpoint import pack, unpack
from taciturn.solvers.contract import (
    Algorithm,
    ExactStep,
    PublicFacts,
    QueryStep,
    Seeds,
    Session,
)
from taciturn.solvers.loop import Training, planned_events
from tests.solvers.helpers import BUDGET, SOLVERS, random_ratings, small_solver

RATINGS = random_ratings(4)
FACTS = PublicFacts.of(RATINGS, Unit.VALUE)


def training(algorithm: Algorithm[Any], session: Session | None = None) -> Training[Any]:
    session = session or Session(noise=InsecureTestNoise(1))
    return Training(algorithm, LocalExecutor(RATINGS), session)


def test_single_steps_end_in_the_state_of_a_run() -> None:
    algorithm = BiasAlgorithm(FACTS, BUDGET)
    whole = training(algorithm).run()
    stepped = training(BiasAlgorithm(FACTS, BUDGET))
    done = list(stepped.steps())
    assert [each.step for each in done] == [0, 1, 2, 3]
    assert np.array_equal(done[-1].after.users, whole.users)
    assert done[0].after is done[1].before and done[3].released.tables == ()
    assert len(stepped.finish().events) == 3


def test_progress_counts_the_steps_of_the_schedule() -> None:
    seen: list[tuple[int, int]] = []
    session = Session(progress=lambda done, total: seen.append((done, total)))
    training(BiasAlgorithm(FACTS, BUDGET), session).run()
    assert seen == [(done, 4) for done in range(5)]


class Counted(BiasAlgorithm):
    """Has an integer in its state, which no checkpoint can hold."""

    def initial_state(self, seeds: Any) -> Any:
        return replace(super().initial_state(seeds), mean=3)


def test_a_state_that_cannot_be_saved_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"state\.mean must be an array or a float"):
        training(Counted(FACTS, BUDGET))


class Larger(BiasAlgorithm):
    """Asks for another table than it scheduled."""

    def query(self, step: int, state: Any) -> Any:
        return super().query(1 - step, state)


class Relabelled(BiasAlgorithm):
    """Names another proof than it scheduled."""

    def query(self, step: int, state: Any) -> Any:
        spec = super().query(step, state)
        spec.queries = (replace(spec.queries[0], proof="als.md#claim"),)
        return spec


@pytest.mark.parametrize("kind", [Larger, Relabelled])
def test_a_query_that_was_not_scheduled_is_refused(kind: type[BiasAlgorithm]) -> None:
    run = training(kind(FACTS, BUDGET))
    with pytest.raises(InvalidParameter, match="not what was scheduled"):
        run.run()
    assert run.finish().events == ()


class Peeking(BiasAlgorithm):
    """Private solver that also reads exact ratings."""

    def __init__(self, facts: PublicFacts, budget: Budget | None) -> None:
        super().__init__(facts, budget)
        self.schedule = (*self.schedule, ExactStep())


def test_a_private_training_reads_no_exact_rating() -> None:
    run = training(Peeking(FACTS, BUDGET))
    with pytest.raises(InvalidParameter, match="without noise"):
        run.run()
    assert not any(isinstance(event, ExactRelease) for event in run.finish().events)


class Spending(BiasAlgorithm):
    """Gives both tables the whole budget."""

    def __init__(self, facts: PublicFacts, budget: Budget | None) -> None:
        super().__init__(facts, budget)
        self.schedule = tuple(
            replace(step, shares=(1.0,)) if isinstance(step, QueryStep) else step
            for step in self.schedule
        )


def test_a_schedule_beyond_the_budget_is_refused_before_the_first_release() -> None:
    with pytest.raises(BudgetExceeded):
        training(Spending(FACTS, BUDGET))
    with pytest.raises(BudgetExceeded):
        planned_events(Spending(FACTS, BUDGET))


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_an_interrupted_run_gives_the_same_fit(name: str, unit: Unit, tmp_path: Path) -> None:
    """Interrupted before every step and resumed each time."""
    solver = small_solver(name, unit)
    budget = BUDGET if solver.is_private else None
    total = len(solver.algorithm_for(RATINGS, budget).schedule)

    def run(folder: RunFolder, stop_at: int | None = None) -> Any:
        def progress(done: int, total: int) -> None:
            if done == stop_at:
                raise KeyboardInterrupt

        return solver.fit(RATINGS, budget, Session(folder=folder, progress=progress))

    whole = run(RunFolder.create(tmp_path / "whole", data=[], noise=InsecureTestNoise(1)))
    path = tmp_path / "broken"
    folder = RunFolder.create(path, data=[], noise=InsecureTestNoise(1))
    for stop_at in range(1, total):
        with pytest.raises(KeyboardInterrupt):
            run(folder, stop_at)
        folder.close()
        folder = RunFolder.resume(path, data=[])
    resumed = run(folder)
    folder.close()
    assert resumed.ledger.events == whole.ledger.events
    for one, two in zip(arrays(whole), arrays(resumed), strict=True):
        assert np.array_equal(one, two)


def arrays(fit: Any) -> list[Any]:
    profiles = (fit.owner_model.users, fit.owner_model.items)
    return [part for each in profiles for part in (each.biases, each.factors)]


@dataclass(frozen=True, eq=False)
class Counting:
    """Another executor than the local one."""

    inner: LocalExecutor
    asked: list[str]

    def answer(self, spec: Any) -> Any:
        self.asked.append(spec.queries[0].purpose)
        return self.inner.answer(spec)

    def every_value(self) -> Any:
        return self.inner.every_value()


def test_the_loop_accepts_any_executor() -> None:
    ratings: Ratings = RATINGS
    executor = Counting(LocalExecutor(ratings), [])
    session = Session(noise=InsecureTestNoise(1))
    Training(BiasAlgorithm(FACTS, BUDGET), executor, session).run()
    assert executor.asked == [
        "sums of ratings by item",
        "sums of ratings by user",
        "sum of ratings",
    ]


def test_nothing_is_released_after_a_post_processing_step() -> None:
    released = [done.released for done in training(BiasAlgorithm(FACTS, BUDGET)).steps()]
    assert isinstance(released[3], Released) and released[3].spec is None


def test_a_folder_cannot_change_between_a_gate_and_an_exact_gate(tmp_path: Path) -> None:
    """Otherwise exact answers could be published under a ledger with status proven."""
    private, exact = small_solver("gradient"), small_solver("non-private-gradient")
    for name, first, second in (("a", private, exact), ("b", exact, private)):
        folder = RunFolder.create(tmp_path / name, data=[b"x"])
        first.fit(RATINGS, BUDGET if first.is_private else None, Session(folder=folder))
        folder.close()
        folder = RunFolder.resume(tmp_path / name, data=[b"x"])
        with pytest.raises(NoiseReuse):
            second.fit(RATINGS, BUDGET if second.is_private else None, Session(folder=folder))
        folder.close()


@pytest.mark.parametrize("moved", [-10, -1, 1, 2, 100])
def test_a_checkpoint_of_another_step_is_not_used(moved: int, tmp_path: Path) -> None:
    solver = small_solver("gradient", iterations=6)
    whole = solver.fit(RATINGS, BUDGET, Session(noise=InsecureTestNoise(1)))
    folder = RunFolder.create(tmp_path / "run", data=[], noise=InsecureTestNoise(1))

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.fit(RATINGS, BUDGET, Session(folder=folder, progress=stop))
    saved = folder.read_state()
    assert saved is not None
    algorithm = solver.algorithm_for(RATINGS, BUDGET)
    found = unpack(saved[1], algorithm.initial_state(Seeds()))
    assert found is not None and found[0] == 3
    folder.save_state(saved[0], pack(3 + moved, found[1]))
    folder.close()
    folder = RunFolder.resume(tmp_path / "run", data=[])
    resumed = solver.fit(RATINGS, BUDGET, Session(folder=folder))
    folder.close()
    assert resumed.ledger.events == whole.ledger.events
    assert all(map(np.array_equal, arrays(whole), arrays(resumed)))
