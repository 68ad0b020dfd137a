"""Contract tests that every solver inherits, by its status.

The test file of a solver has one class for each privacy unit it supports. `SolverContract` is for
every solver, `PrivateContract` for those that add noise, `ProvenContract` for those with a proof,
`ValueContract` for those with a proof under unit `value`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import ExactRelease, FoldInServing, GaussianRelease, PatternRelease
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import InsecureTestNoise, NoiseSource
from taciturn.mechanisms.query import BoundedQuery, Executor, QuerySpec, Released
from taciturn.solvers.catalog import CATALOG, check_solver, make_solver
from taciturn.solvers.contract import Fit, PublicFacts, QueryStep, Session
from taciturn.solvers.solver import Solver
from tests.instruction_sets import every_set, on_every_set
from tests.solvers.helpers import (
    BUDGET,
    checkerboard,
    close,
    largest_changes,
    numbers,
    random_ratings,
    same,
)

PROOFS = Path(__file__).parent.parent.parent / "docs" / "proofs"

GENEROUS = Budget.from_epsilon(50, 1e-5)


class SolverContract:
    """Tests of every solver."""

    name: ClassVar[str]
    small: ClassVar[Mapping[str, Any]]
    unit: ClassVar[Unit] = Unit.VALUE
    status: ClassVar[Status]

    def made(self, **options: Any) -> Solver:
        solver: Solver = make_solver(self.name, **({"unit": self.unit} | options))
        return solver

    def solver(self) -> Solver:
        return self.made(**self.small)

    def budget(self, budget: Budget = BUDGET) -> Budget | None:
        return budget if CATALOG[self.name].is_private else None

    def run(self, ratings: Ratings, seed: int = 3, **options: Any) -> Fit:
        session = Session(seed=seed, noise=InsecureTestNoise(7), **options)
        return self.solver().fit(ratings, self.budget(), session)

    def test_the_class_agrees_with_its_catalog_entry(self) -> None:
        solver, entry = self.solver(), CATALOG[self.name]
        assert type(solver) is entry.load() and solver.name == self.name
        assert solver.status is entry.status is self.status and solver.units == entry.units
        assert solver.unit is self.unit and self.unit in solver.units
        assert solver.is_private is entry.is_private
        assert solver.settings.keys() == entry.settings.keys()
        entry.check_settings(self.run(random_ratings()).settings)

    def test_its_ledger_passes_verification(self) -> None:
        fit = self.solver().fit(random_ratings(6), self.budget())
        check_solver(self.name, fit.settings, fit.ledger)
        if self.status is not Status.NONE:
            twice = Ledger([*fit.ledger.events, fit.ledger.events[0]], run=fit.ledger.run)
            with pytest.raises(InvalidDocument):
                check_solver(self.name, fit.settings, twice)

    def test_the_status_follows_from_the_ledger(self) -> None:
        fit = self.solver().fit(random_ratings(), self.budget())
        certificate = Certificate.from_ledger(fit.ledger, BUDGET.delta)
        assert certificate.status is self.status
        assert (certificate.epsilon is None) is (self.status is Status.NONE)

    def test_the_same_noise_and_seed_give_the_same_fit(self) -> None:
        ratings = random_ratings(1)
        assert same(self.run(ratings), self.run(ratings))

    @every_set
    def test_threads_change_nothing(self) -> None:
        ratings = random_ratings(2, users=300, items=40)
        one = self.run(ratings, threads=1)
        assert all(same(one, self.run(ratings, threads=threads)) for threads in (2, 4, 5))

    def test_fits_on_all_instruction_sets_agree(self) -> None:
        ratings = random_ratings(2, users=300, items=40)
        fits = on_every_set(lambda: self.run(ratings, threads=2))
        assert all(close(fit, fits["portable"]) for fit in fits.values())

    @pytest.mark.parametrize("kind", [int, str])
    def test_a_fit_has_the_ids_of_the_ratings(self, kind: type) -> None:
        """Profiles of the same users and items, whatever their ids and the order of rows."""
        frame = random_ratings(5, users=12, items=9).to_frame()
        renamed = frame.with_columns(
            user_id=pl.Series([kind(1000 - user) for user in frame["user_id"]]),
            item_id=pl.Series([kind(2000 - item) for item in frame["item_id"]]),
        ).sample(fraction=1.0, shuffle=True, seed=1)
        model = self.run(load(renamed, scale="1:5:1")).owner_model
        for profiles, name in ((model.users, "user_id"), (model.items, "item_id")):
            assert profiles is not None
            assert sorted(profiles.ids.to_list()) == sorted(renamed[name].unique().to_list())
            assert len(profiles.ids) == len(profiles.biases) == len(profiles.factors)

    def test_predictions_follow_the_ids(self) -> None:
        """Items that all users like have higher predictions than items that none likes."""
        frame = pl.DataFrame(
            [(user, item, 5.0 if item % 2 else 1.0) for user in range(60) for item in range(10)],
            schema=["user_id", "item_id", "rating"],
            orient="row",
        )
        session = Session(noise=InsecureTestNoise(1))
        fit = self.made().fit(load(frame, scale="1:5:1"), self.budget(GENEROUS), session)
        users = np.zeros(10, dtype=np.int32)
        for user in (0, 30, 59):
            scores = fit.owner_model.predict_rows(users + user, np.arange(10, dtype=np.int32))
            assert scores[1::2].mean() > scores[::2].mean()
            assert scores.min() >= 1 and scores.max() <= 5

    def test_bad_input_is_refused(self) -> None:
        solver, ratings = self.solver(), random_ratings()
        with pytest.raises(InvalidParameter, match=r"taciturn\.load"):
            frame: Any = ratings.to_frame()
            solver.fit(frame, BUDGET)
        nothing = ratings.select(np.zeros(len(ratings), dtype=np.bool_))
        if self.unit is Unit.VALUE:
            with pytest.raises(InvalidParameter, match="no ratings"):
                solver.fit(nothing, BUDGET)
        else:
            solver.fit(nothing, BUDGET)  # whether there are ratings is private
        with pytest.raises(InvalidParameter, match="budget"):
            solver.fit(ratings, None if solver.is_private else BUDGET)
        for field in fields(solver):  # type: ignore[arg-type]
            bad: Any = "nonsense" if field.name == "centre" else -1
            with pytest.raises(InvalidParameter, match=field.name):
                self.made(**{field.name: bad})
        with pytest.raises(FrozenInstanceError):
            solver.factors = 3  # type: ignore[attr-defined]

    def test_a_solver_equals_one_made_from_its_settings(self) -> None:
        assert self.made(**self.solver().settings) == self.solver()

    def test_rows_without_ratings_get_finite_profiles(self) -> None:
        ratings = random_ratings(3)
        keep = np.ones(len(ratings), dtype=np.bool_)
        keep[: ratings.by_user.starts[2]] = False
        keep[ratings.by_user.columns == 4] = False
        fit = self.run(ratings.select(keep))
        assert all(np.isfinite(array).all() for array in numbers(fit))
        assert len(fit.owner_model.user_profiles) == ratings.shape[0]

    def test_a_wider_scale_gives_wider_predictions(self) -> None:
        """Ratings and scale times ten give predictions times ten, approximately."""
        ratings = random_ratings(4, users=60, items=40, density=0.5)
        frame = ratings.to_frame().with_columns(rating=pl.col("rating") * 10)
        pairs = ratings.rows(), ratings.by_user.columns
        one, two = (
            self.run(each).owner_model.predict_rows(*pairs)
            for each in (ratings, load(frame, scale="10:50:10"))
        )
        assert np.allclose(one * 10, two, atol=0.5)

    def test_the_facts_of_its_unit_are_public(self) -> None:
        facts = PublicFacts.of(random_ratings(), self.unit)
        assert (facts.public_pattern is None) is (self.unit is not Unit.VALUE)
        assert (facts.listed_users is None) is (self.unit is Unit.USER)
        budget = self.budget()
        algorithm = self.solver().resolved(budget).algorithm(facts, budget)
        assert algorithm.unit is self.unit
        assert (algorithm.budget is None) is (self.status is Status.NONE)


class LearnsCheckerboard(SolverContract):
    """Test of solvers whose factors can learn a checkerboard."""

    def test_a_checkerboard_is_learnt(self) -> None:
        train, test = checkerboard()
        session = Session(noise=InsecureTestNoise(1))
        fit = self.made(factors=3).fit(train, self.budget(GENEROUS), session)
        # Predicting the mean has an error of 2.
        assert rmse(fit, test) < (0.4 if self.status is Status.NONE else 1.2)


class PrivateContract(SolverContract):
    """Tests of solvers that add noise, with a proof or a claim."""

    spends = 0.9999
    """Minimum fraction of the budget that is spent."""

    fixed_sensitivities = True
    moves_shares = False
    """True if sensitivities are known before the first release."""

    def test_the_budget_is_spent_and_not_exceeded(self) -> None:
        fit = self.solver().fit(random_ratings(), BUDGET)
        certificate = Certificate.from_ledger(fit.ledger, BUDGET.delta)
        assert certificate.epsilon is not None
        assert self.spends * BUDGET.epsilon < certificate.epsilon <= BUDGET.epsilon

    def test_the_planned_events_are_recorded(self) -> None:
        solver, ratings = self.solver(), random_ratings(6)
        recorded = list(solver.fit(ratings, BUDGET).ledger.events)
        planned = solver.plan(ratings, BUDGET)
        assert recorded and not any(isinstance(event, ExactRelease) for event in recorded)
        if self.fixed_sensitivities:
            assert planned == recorded
            return
        # Only the ratios of sensitivity to noise scale are fixed in advance.
        scaled = []
        for plan, event in zip(planned, recorded, strict=True):
            if isinstance(plan, GaussianRelease) and isinstance(event, GaussianRelease):
                if not self.moves_shares:
                    assert plan.mu == pytest.approx(event.mu, rel=1e-12)
                facts = {name: getattr(event, name) for name in ("sensitivity", "noise_scale")}
                plan = replace(plan, **facts)
            scaled.append(plan)
        assert scaled == recorded
        # Shares may move between releases; their total, and with it the guarantee, is fixed.
        total = Certificate.from_ledger(Ledger(planned), 1e-5).mu
        assert Certificate.from_ledger(Ledger(recorded), 1e-5).mu == pytest.approx(total, rel=1e-9)

    def test_the_shares_of_the_schedule_add_up_to_at_most_one(self) -> None:
        solver, ratings = self.solver(), random_ratings(6)
        facts = PublicFacts.of(ratings, self.unit)
        schedule = solver.resolved(BUDGET).algorithm(facts, BUDGET).schedule
        shares = [
            share for step in schedule if isinstance(step, QueryStep) for share in step.shares
        ]
        assert sum(shares) <= 1

    def test_noise_is_drawn_as_recorded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every event draws noise once for each entry of its table; nothing else draws noise."""
        drawn: Counter[int] = Counter()
        scales: dict[int, float] = {}
        original = NoiseSource._integers

        def integers(self: NoiseSource, table: Any, **address: int) -> Any:
            drawn[address["event"]] += address["count"]
            scales[address["event"]] = table.sigma
            return original(self, table, **address)

        queries: list[BoundedQuery] = []
        released = Gate.release

        def release(self: Gate, spec: QuerySpec, *rest: Any, **options: Any) -> Any:
            queries.extend(spec.queries)
            return released(self, spec, *rest, **options)

        monkeypatch.setattr(NoiseSource, "_integers", integers)
        monkeypatch.setattr(Gate, "release", release)
        fit = self.run(random_ratings(7))
        free = PatternRelease | FoldInServing
        events = [event for event in fit.ledger.events if not isinstance(event, free)]
        assert sorted(drawn) == list(range(len(events)))
        for place, (event, query) in enumerate(zip(events, queries, strict=True)):
            assert isinstance(event, GaussianRelease)
            assert drawn[place] == query.shape[0] * query.shape[1]
            assert scales[place] * query.step == event.noise_scale
            assert event.sensitivity == query.sensitivity * query.step

    def test_noise_is_fresh_without_a_given_source(self) -> None:
        ratings = random_ratings()
        fits = [self.solver().fit(ratings, BUDGET, Session(seed=3)) for _ in range(2)]
        assert not same(*fits)

    def test_noise_is_independent_of_the_seed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[list[int]] = []
        original = NoiseSource._integers
        is_fixed = self.fixed_sensitivities or self.unit is Unit.VALUE

        def integers(self: NoiseSource, table: Any, **address: int) -> Any:
            noise = original(self, table, **address)
            # Later noise scales depend on earlier releases.
            if is_fixed or address["event"] < 5:
                seen[-1] += noise[:5].tolist()
            return noise

        monkeypatch.setattr(NoiseSource, "_integers", integers)
        for seed in (1, 2):
            seen.append([])
            self.run(random_ratings(), seed=seed, threads=1)
        assert seen[0] == seen[1]


class ProvenContract(PrivateContract):
    """Tests of solvers with a proof."""

    status = Status.PROVEN
    proof: ClassVar[str] = ""  # by default that of the catalog
    further_proofs: ClassVar[tuple[str, ...]] = ()

    def test_every_event_names_a_proof(self) -> None:
        shape = CATALOG[self.name].ledgers[self.unit]
        assert shape is not None
        proofs = {self.proof or shape.proof, *self.further_proofs}
        for proof in proofs:
            page, _, heading = proof.partition("#")
            text = (PROOFS / page).read_text(encoding="utf-8").lower()
            headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
            assert heading.replace("-", " ") in headings
        noisy = [
            event
            for event in self.run(random_ratings()).ledger.events
            if isinstance(event, GaussianRelease)
        ]
        assert {event.proof for event in noisy} == proofs
        assert all(event.flaw is None for event in noisy)

    def test_a_fit_depends_on_ratings_only_through_the_gate(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the same numbers from the gate, other ratings give the same fit.

        Under unit `value` the other ratings have the same pattern, under other units another one.
        """
        random = np.random.default_rng(1)

        def release(
            gate: Gate, spec: QuerySpec, executor: Executor, *, shares: tuple[float, ...]
        ) -> Released:
            pairs = zip(spec.queries, shares, strict=True)
            return Released(
                spec=spec,
                tables=tuple(random.normal(size=query.shape) for query in spec.queries),
                noise_scales=tuple(gate.plan(query, share).noise_scale for query, share in pairs),
            )

        monkeypatch.setattr(Gate, "release", release)
        ratings, others = random_ratings(9), random_ratings(10, density=0.6)
        if self.unit is Unit.VALUE:
            others = load(ratings.to_frame().with_columns(rating=pl.lit(1.0)), scale="1:5:1")
        assert ratings.user_ids.equals(others.user_ids)
        assert ratings.item_ids.equals(others.item_ids)
        fits = []
        for data in (ratings, others):
            random = np.random.default_rng(1)
            fits.append(replace(self.run(data), private_users=None))
        assert same(*fits)


class ValueContract(ProvenContract):
    """Tests of solvers with a proof under unit `value`."""

    tightness = 0.5
    """Minimum fraction of the recorded sensitivity that some neighbour attains."""

    def test_neighbours_never_differ_by_more_than_recorded(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Given the same transcript, every table of every release keeps its bound.

        A proven solver's query specs hold released and public values only, so those of a run on one
        dataset are those of a run on its neighbour that saw the same releases.
        """
        assert self.tightness < max(largest_changes(self.run, monkeypatch)) <= 1
