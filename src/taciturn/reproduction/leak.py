"""`taciturn paper leak`: privacy loss of the paper's algorithm beyond its claim, on real data.

Runs are simulated on pairs of neighbouring datasets, for several items, with real noise. All
results are exact, and owner-only unless the set is public.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from taciturn._internal import validate
from taciturn._internal.processes import job_count, run_tasks
from taciturn.accounting.budget import Budget
from taciturn.accounting.paper import paper_account
from taciturn.accounting.units import Unit
from taciturn.audit.counterexample import Counterexample, counterexample
from taciturn.audit.neighbours import Neighbour, id_index, neighbour, popular_items
from taciturn.data.named import is_named, load_named
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.reproduction.descents import Protocol, paper_solver
from taciturn.reproduction.losses import (
    PrivacyLoss,
    delta_terms,
    gradient_loss,
    mean_lower,
    paper_losses,
)
from taciturn.reproduction.published import DELTA, DELTA_I, FACTORS, STEP_SIZE, Configuration
from taciturn.solvers.contract import PublicFacts
from taciturn.solvers.gradient import GradientSolver
from taciturn.solvers.paper import PaperSolver

CONFIDENCE = 0.99
GRADIENT_RUNS = 4
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
LOSS_EVERY = 10
"""Iterations between reported losses."""


@dataclass(frozen=True, kw_only=True)
class LeakSettings:
    """Settings of the experiment: the paper's run, the items, and the number of runs.

    One rating of each item differs between the neighbouring datasets. `items` are ids as text; if
    empty, the most-rated item and two of medium popularity are used. `transcripts` is the number of
    runs simulated on each dataset.
    """

    dataset: str = "ml-1m"
    items: tuple[str, ...] = ()
    transcripts: int = 32
    epsilon_i: float = 0.4
    iterations: int = 300
    protocol: Protocol = Protocol.AS_PRINTED

    def __post_init__(self) -> None:
        validate.positive_integer("transcripts", self.transcripts, "32 is the default")
        validate.positive_integer("iterations", self.iterations, "300 is the default")
        validate.positive("epsilon_i", self.epsilon_i, "0.4 is the default")
        protocol = validate.choice("protocol", self.protocol, Protocol)
        object.__setattr__(self, "protocol", protocol)

    def solver(self, ratings: Ratings) -> PaperSolver:
        """The paper's algorithm with these settings."""
        chosen = Configuration(epsilon_i=self.epsilon_i, factors=FACTORS, step_size=STEP_SIZE)
        return paper_solver(chosen, self.protocol, ratings.scale, self.iterations)


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemLeak:
    """Privacy losses for one item: runs on the original and on the neighbouring dataset."""

    item_id: Any
    raters: int
    before: float
    after: float
    original: tuple[PrivacyLoss, ...]
    changed: tuple[PrivacyLoss, ...]

    def delta_at(self, epsilon: float) -> tuple[float, float]:
        """δ at ε, the larger of both directions, and its lower bound with CONFIDENCE."""
        each = [
            delta_terms(epsilon, np.array([run.loss[-1] for run in runs]))
            for runs in (self.original, self.changed)
        ]
        # The better of two bounds is used, so each gets half the failure probability.
        confidence = 1 - (1 - CONFIDENCE) / 2
        return max(float(terms.mean()) for terms in each), max(
            mean_lower(terms, confidence) for terms in each
        )

    @property
    def roots(self) -> list[float]:
        """√Q of every run, sorted."""
        both = (*self.original, *self.changed)
        return sorted(float(np.sqrt(run.squares[-1])) for run in both)


@dataclass(frozen=True, eq=False, kw_only=True)
class Leak:
    """The paper's claims and the simulated privacy losses."""

    settings: LeakSettings
    claimed_epsilon: float
    claimed_mu: float
    counterexamples: tuple[Counterexample, ...]
    items: tuple[ItemLeak, ...]
    gradient_budget: Budget
    gradient_mu: float
    gradient_roots: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Claims and privacy losses as JSON types."""
        cases = [asdict(each) for each in self.counterexamples]
        return {
            "counterexample": cases[0] | {"cases": cases},
            "claimed_epsilon": self.claimed_epsilon,
            "claimed_delta": DELTA,
            "claimed_mu": self.claimed_mu,
            "confidence": CONFIDENCE,
            **asdict(self.settings),
            "items": [self._item(item) for item in self.items],
            "gradient": {
                "epsilon": self.gradient_budget.epsilon,
                "delta": self.gradient_budget.delta,
                "mu": self.gradient_mu,
                "sqrt_q_largest": max(self.gradient_roots),
                "exceeds": max(self.gradient_roots) > self.gradient_mu,
                "transcripts": len(self.gradient_roots),
                "item_id": self.items[0].item_id,
            },
        }

    def _item(self, item: ItemLeak) -> dict[str, Any]:
        delta, lower = item.delta_at(self.claimed_epsilon)
        losses = np.array([run.loss for run in (*item.original, *item.changed)])
        last = losses.shape[1] - 1
        shown = np.array([*range(LOSS_EVERY - 1, last, LOSS_EVERY), last])
        return {
            "item_id": item.item_id,
            "raters": item.raters,
            "before": item.before,
            "after": item.after,
            "delta_at_claim": delta,
            "delta_at_claim_lower": lower,
            "sqrt_q": _quantiles(np.array(item.roots)),
            "loss": {
                "iterations": (shown + 1).tolist(),
                "median": np.median(losses[:, shown], axis=0).tolist(),
                "least": losses[:, shown].min(axis=0).tolist(),
                "largest": losses[:, shown].max(axis=0).tolist(),
            },
        }


def measure_leak(
    settings: LeakSettings | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Leak:
    """Measure the privacy loss of the paper's algorithm. Reads the ratings of a named set."""
    settings = settings or LeakSettings()
    jobs = job_count(jobs)
    ratings = _ratings(settings.dataset)
    account = paper_account(
        epsilon_i=settings.epsilon_i,
        delta_i=DELTA_I,
        iterations=settings.iterations,
        delta=DELTA,
    )
    # Raises if the noise scale is out of bounds.
    settings.solver(ratings).algorithm(PublicFacts.of(ratings, Unit.VALUE), None)
    chosen = tuple(id_index(ratings.item_ids, "item", each) for each in settings.items)
    chosen = tuple(dict.fromkeys(chosen)) or tuple(popular_items(ratings))
    variants = range(len(chosen) + 1)
    tasks = [
        _Task(settings, chosen, each) for _ in range(settings.transcripts) for each in variants
    ]
    found: list[list[list[PrivacyLoss]]] = [[] for _ in variants]
    done = 0

    def keep(task: _Task, losses: list[PrivacyLoss]) -> None:
        nonlocal done
        found[task.variant].append(losses)
        done += 1
        progress(done, len(tasks))

    progress(0, len(tasks))
    run_tasks(_work, tasks, min(jobs, len(tasks)), keep)
    neighbours = _neighbours(settings.dataset, chosen)
    budget = Budget.from_epsilon(account.epsilon_paper, DELTA)
    sound = [
        gradient_loss(GradientSolver(), budget, ratings, neighbours[0])
        for _ in range(GRADIENT_RUNS)
    ]
    return Leak(
        settings=settings,
        claimed_epsilon=account.epsilon_paper,
        claimed_mu=account.mu,
        counterexamples=tuple(
            counterexample(epsilon, DELTA) for epsilon in (account.epsilon_paper, 1.0)
        ),
        items=tuple(
            ItemLeak(
                item_id=ratings.item_ids[each.item],
                raters=each.raters.size,
                before=each.before,
                after=each.after,
                original=tuple(losses[place] for losses in found[0]),
                changed=tuple(losses[0] for losses in found[place + 1]),
            )
            for place, each in enumerate(neighbours)
        ),
        gradient_budget=budget,
        gradient_mu=min(mu for _, mu in sound),
        gradient_roots=tuple(float(np.sqrt(loss.squares[-1])) for loss, _ in sound),
    )


@dataclass(frozen=True)
class _Task:
    """One run: variant 0 is the original dataset, variant p the neighbour for item p − 1."""

    settings: LeakSettings
    items: tuple[int, ...]
    variant: int


def _work(task: _Task) -> list[PrivacyLoss]:
    ratings = _ratings(task.settings.dataset)
    neighbours = _neighbours(task.settings.dataset, task.items)
    if task.variant:
        neighbours = neighbours[task.variant - 1 : task.variant]
    solver = task.settings.solver(ratings)
    try:
        return paper_losses(solver, ratings, neighbours, changed=task.variant > 0, threads=1)
    except InvalidParameter as error:
        if "finite" not in str(error):
            raise
        raise InvalidParameter(
            "gradient descent diverged; use a larger --epsilon-i or fewer --iterations"
        ) from None


@lru_cache(maxsize=1)
def _ratings(dataset: str) -> Ratings:
    if not is_named(dataset):
        raise InvalidParameter(f"there is no set {dataset!r}; run: taciturn data list")
    return load_named(dataset)


@lru_cache(maxsize=1)
def _neighbours(dataset: str, items: tuple[int, ...]) -> list[Neighbour]:
    ratings = _ratings(dataset)
    return [neighbour(ratings, item) for item in items]


def _quantiles(values: np.ndarray[Any, Any]) -> dict[str, float]:
    names = ("least", "lower_quartile", "median", "upper_quartile", "largest")
    return dict(zip(names, np.quantile(values, QUANTILES).tolist(), strict=True))
