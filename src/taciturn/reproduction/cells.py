"""Cells: the single training runs behind the figures.

The result of a cell is cached by a digest of its configuration and of the data file. An interrupted
reproduction therefore resumes, and figures share runs.
"""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from taciturn._internal.cell_cache import CellCache
from taciturn.data.download import file_digest
from taciturn.data.named import cache_folder, locate
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.mechanisms.noise import NoiseSource
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.values import item_means
from taciturn.reproduction.descents import Protocol, Step, descend, paper_solver
from taciturn.reproduction.published import SETS, Configuration, PaperSet
from taciturn.solvers.paper import has_settled

VERSION = 1
"""Version of the computation in a cell. Cached results of other versions are ignored."""

TOLERANCE, PATIENCE = 5e-5, 15
"""Stopping rule; no other rule tried comes closer to the paper's numbers of iterations."""

ITERATIONS_MAX = 20_000
"""Maximum number of iterations of a run that the stopping rule does not end."""

HOLDOUT, SPLIT = 0.1, 0
"""Held-out fraction of the ratings, and the seed of the split. The split is the same for all runs,
because errors differ more between splits than between lines of a figure."""

MARKS = 50
"""Approximate number of held-out errors measured during a run of known length."""

MARK_EVERY = 50
"""Iterations between held-out errors if the stopping rule ends the run."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training run: all inputs of its result except noise and the data file.

    With `iterations` None, the stopping rule ends the run. With `held_out`, the run trains on nine
    tenths of the ratings and measures the error on the rest.
    """

    data: str
    protocol: Protocol
    configuration: Configuration
    iterations: int | None
    seed: int
    held_out: bool

    @property
    def paper_set(self) -> PaperSet:
        """The paper's data set."""
        return SETS[self.data]

    @property
    def facts(self) -> dict[str, Any]:
        """All inputs of the result except noise, including the data file, as a cache key."""
        facts = {
            "version": VERSION,
            "data": data_digest(self.paper_set.source),
            "cell": asdict(self),
        }
        if self.iterations is None:
            facts["rule"] = (TOLERANCE, PATIENCE, ITERATIONS_MAX)
        return facts


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Errors measured by a cell.

    rmse: errors on the training ratings before steps 0 … J − 1. rmse_test: pairs (iteration, error
    on held-out ratings before it), empty unless the cell holds out ratings. ratings: number of
    ratings, including held-out ones.
    """

    rmse: tuple[float, ...]
    rmse_test: tuple[tuple[int, float], ...]
    ratings: int

    @property
    def iterations(self) -> int:
        """Number of iterations, J."""
        return len(self.rmse)


def run_cell(
    cell: Cell, ratings: Ratings, threads: int | None = None, noise: NoiseSource | None = None
) -> Trace:
    """Train and measure the errors of each iteration. Reads the ratings; all errors are exact."""
    total, test = len(ratings), None
    if cell.held_out:
        ratings, test = random_split(ratings, HOLDOUT, SPLIT)
    most = cell.iterations or ITERATIONS_MAX
    solver = paper_solver(cell.configuration, cell.protocol, ratings.scale, most)
    marks = _marks(cell.iterations)
    errors: list[float] = []
    held: list[tuple[int, float]] = []
    scorer = _Scorer(ratings, test, cell.protocol) if test is not None else None
    for step in descend(
        solver,
        ratings,
        noised=cell.configuration.epsilon_i is not None,
        seed=cell.seed,
        threads=threads,
        noise=noise,
    ):
        errors.append(step.error)
        is_last = cell.iterations is None and has_settled(step.errors, TOLERANCE, PATIENCE)
        if scorer and (step.number in marks or is_last):
            held.append((step.number, scorer.rmse(step)))
        if is_last:
            break
    return Trace(
        rmse=tuple(round(error, 7) for error in errors),
        rmse_test=tuple((number, round(error, 7)) for number, error in held),
        ratings=total,
    )


def _marks(iterations: int | None) -> range | set[int]:
    if iterations is None:
        return range(0, ITERATIONS_MAX, MARK_EVERY)
    return set(np.linspace(0, iterations - 1, MARKS).astype(int).tolist())


class _Scorer:
    """Held-out errors of the profiles before a step, in 64-bit floats."""

    def __init__(self, train: Ratings, test: Ratings, protocol: Protocol) -> None:
        self._test, self._values = test, test.values().astype(np.float64)
        self._means = np.zeros(train.shape[1])
        if protocol is Protocol.AS_RUN:
            self._means = item_means(train)

    def rmse(self, step: Step) -> float:
        """Held-out root-mean-square error before a step."""
        test, users = self._test, step.state.users
        model = FactorModel(
            scale=test.scale,
            mean=0.0,
            users=Profiles(ids=test.user_ids, biases=np.zeros(len(users)), factors=users),
            items=Profiles(ids=test.item_ids, biases=self._means, factors=step.state.items),
        )
        errors = model.predict_rows(test.rows(), test.by_user.columns) - self._values
        return math.sqrt(float(np.mean(errors * errors)))


def cell_cache() -> CellCache:
    """Cache of the results of all cells."""
    return CellCache(cache_folder() / "paper")


@lru_cache(maxsize=8)
def data_digest(source: str) -> str:
    """Digest of a set's file, which is downloaded if it is missing."""
    return file_digest(locate(source, check=False), "sha256")


def cached_trace(cell: Cell, cache: CellCache) -> Trace | None:
    """Cached result of a cell, or None."""

    def parse(document: Any) -> Trace | None:
        trace = Trace(
            rmse=tuple(map(float, document["rmse"])),
            rmse_test=tuple((int(number), float(y)) for number, y in document["rmse_test"]),
            ratings=int(document["ratings"]),
        )
        is_whole = trace.iterations == (cell.iterations or max(1, trace.iterations))
        return trace if is_whole and bool(trace.rmse_test) == cell.held_out else None

    return cache.get(cell.facts, parse)


def cache_trace(cell: Cell, trace: Trace, cache: CellCache) -> None:
    """Cache the result of a cell."""
    cache.put(cell.facts, {"cell": asdict(cell)} | asdict(trace))


def cost(cell: Cell, iterations: int) -> float:
    """Approximate running time of a cell, in arbitrary units."""
    ratings = cell.paper_set.ratings
    return iterations * ratings * (1 + cell.configuration.factors / 32)
