"""One noised iteration of the paper's algorithm on MovieLens-1M, in milliseconds.

`p100` is the paper's time on its GPU (figure 16; interpolated at 64 factors). The columns named
after instruction sets are Taciturn with each of them. `scipy` is the same iteration with sparse
matrices and NumPy's noise; `torch` uses dense matrices as in the paper, if torch is installed. Best
of 20 rounds; instruction sets alternate, and others run after them, because they leave nothing of
the ratings in the caches. Without MovieLens-1M in TACITURN_DATA, synthetic ratings of its size are
used, and the paper's times are only a rough guide.
"""

import importlib.util
from collections.abc import Callable

import numpy as np
import scipy.sparse

from benchmarks.report import Bar, Row
from benchmarks.timing import best_of
from taciturn import _core
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.errors import TaciturnError
from taciturn.mechanisms.extent import Extent
from taciturn.mechanisms.gate import Gate
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.contract import PublicFacts, Seeds
from taciturn.solvers.loop import scheduled_queries
from taciturn.solvers.paper import PaperAlgorithm, PaperSolver

# Milliseconds per iteration by the number of factors, ε_i = 0.5: figure 16 of the paper.
P100 = {
    4: 3.657, 12: 4.053, 20: 4.42, 44: 6.023, 60: 6.565, 96: 8.521,
    128: 10.275, 192: 13.813, 256: 17.184, 320: 20.927, 512: 32.564,
}  # fmt: skip
ROUNDS = 20
SLOW_SECONDS = 0.2
BARS = {20: 4.42, 64: 6.1}  # with the fastest instruction set; at 64, less than the P100's 6.78


def run() -> list[Row]:
    """Times for each number of factors, and the speed-up of the fastest instruction set."""
    ratings, source = ratings_at_hand()
    rows: list[Row] = []
    for factors in sorted({*P100, *BARS}):
        p100 = round(float(np.interp(factors, [*P100], [*P100.values()])), 2)
        contenders = {
            name: _with(name, paper_iteration(ratings, factors))
            for name in _core.instruction_sets()
        }
        found = best_of(contenders, ROUNDS)
        others = {"scipy": scipy_iteration(ratings, factors)}
        if importlib.util.find_spec("torch"):
            others["torch"] = _torch(ratings, factors)
        found |= best_of(others, ROUNDS, slow=SLOW_SECONDS)
        best = {name: 1e3 * seconds for name, seconds in found.items()}
        fastest = best[_core.instruction_sets()[0]]
        rows.append(
            {"ratings": source, "factors": factors, "p100_ms": p100}
            | {f"{name}_ms": round(time, 2) for name, time in best.items()}
            | {
                f"times_{name}": round(time / fastest, 2)
                for name, time in ({"p100": p100} | best).items()
                if name not in _core.instruction_sets()
            }
        )
    return rows


def bars(rows: list[Row]) -> list[Bar]:
    """The times of the paper's GPU as maxima."""
    name = _core.instruction_sets()[0]
    return [
        Bar.at_most(
            f"iteration with {row['factors']} factors, {name}: milliseconds",
            row[f"{name}_ms"],
            BARS[factors],
        )
        for row in rows
        if (factors := int(str(row["factors"]))) in BARS
    ]


def _with(name: str, work: Callable[[], None]) -> Callable[[], None]:
    """The same work with an instruction set."""

    def run() -> None:
        before = _core.instruction_set()
        _core.use_instruction_set(name)
        work()
        _core.use_instruction_set(before)

    return run


def ratings_at_hand() -> tuple[Ratings, str]:
    """MovieLens-1M if available, otherwise synthetic ratings of its size."""
    try:
        return load("ml-1m"), "ml-1m"
    except TaciturnError:
        return load("synthetic:1m"), "synthetic:1m"


def paper_iteration(ratings: Ratings, factors: int) -> Callable[[], None]:
    """First iteration of the paper's algorithm; it can be repeated up to 1,000 times."""
    solver = PaperSolver(factors=factors, epsilon_i=0.5, iterations=1000)
    algorithm = PaperAlgorithm(solver, PublicFacts.of(ratings, Unit.VALUE))
    scheduled = scheduled_queries(algorithm)
    gate = Gate(
        budget=solver.claimed_budget(),
        unit=Unit.VALUE,
        extent=Extent.of(query for query, _ in scheduled),
    )
    _, share = scheduled[0]
    executor, state = LocalExecutor(ratings), algorithm.initial_state(Seeds())

    def iterate() -> None:
        released = gate.release(algorithm.query(0, state), executor, shares=(share,))
        algorithm.update(0, state, released)

    return iterate


def scipy_iteration(ratings: Ratings, factors: int) -> Callable[[], None]:
    """The same iteration with scipy's sparse matrices and NumPy's noise."""
    side = ratings.by_item
    items = np.repeat(np.arange(side.starts.size - 1), np.diff(side.starts))
    users, values = side.columns, ratings.scale.decode(side.codes)
    random = np.random.default_rng(0)
    x, theta = (random.normal(size=(n, factors)) / factors**0.5 for n in ratings.shape[::-1])

    def iterate() -> None:
        errors = np.empty(len(values))
        for begin in range(0, len(values), 2**16):
            part = slice(begin, begin + 2**16)
            errors[part] = np.einsum("nk,nk->n", x[items[part]], theta[users[part]])
        errors -= values
        table = scipy.sparse.csr_array((errors, users, side.starts), shape=ratings.shape[::-1])
        gradient_x, gradient_theta = table @ theta, table.T @ x
        gradient_theta += random.normal(scale=20, size=gradient_theta.shape)
        _ = x - 5e-4 * gradient_x, theta - 5e-4 * gradient_theta

    return iterate


def _torch(ratings: Ratings, factors: int) -> Callable[[], None]:
    import torch

    side = ratings.by_item
    items = np.repeat(np.arange(side.starts.size - 1), np.diff(side.starts))
    table, pattern = torch.zeros(ratings.shape[::-1]), torch.zeros(ratings.shape[::-1])
    places = torch.from_numpy(items), torch.from_numpy(side.columns.astype(np.int64))
    table[places] = torch.from_numpy(ratings.scale.decode(side.codes))
    pattern[places] = 1
    x, theta = (torch.randn(n, factors) / factors**0.5 for n in ratings.shape[::-1])

    def iterate() -> None:
        errors = pattern * (x @ theta.T) - table
        gradient_x = errors @ theta
        gradient_theta = errors.T @ x + 20 * torch.randn(theta.shape)
        _ = x - 5e-4 * gradient_x, theta - 5e-4 * gradient_theta

    return iterate
