"""Compiled kernels on MovieLens-1M against references, scipy and the limits of the machine.

References are slow, obvious loops over ratings or rows in Python, timed on a sample of the ratings
and extrapolated. `float_ms` is the fused gradient in floats, without grid, clipping, biases or
squares (benchmarks/native.cpp); profiles are packed before both are timed. An iteration is one of
the paper's solver, which has its own pass in floats, including noise and steps. `fma_percent` is
the percentage of the machine's peak rate of multiply-adds, measured in the same run. scipy uses one
thread, the others two, and BLAS its default. Without MovieLens-1M in TACITURN_DATA, synthetic
ratings of its size are used.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from benchmarks.native import FloatPass, multiply_adds_per_ns
from benchmarks.noise import only_noise
from benchmarks.report import Bar, Row
from benchmarks.timing import best_of
from benchmarks.training import paper_iteration, ratings_at_hand, scipy_iteration
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings, group
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import Released
from taciturn.model.top_k import ItemIndex
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import AxisFeatures
from taciturn.queries.prediction_errors import PredictionErrorSums, pass_axis
from taciturn.queries.reference import reference_tables
from taciturn.queries.values import ValueView, on_grid
from taciturn.queries.weighted_sums import WeightedSums
from taciturn.solvers.contract import PublicFacts, Seeds
from taciturn.solvers.least_squares import LeastSquaresAlgorithm, LeastSquaresState
from tests.solvers.als.test_posterior import Problem

FACTORS = (20, 64)
THREADS = 2
LEVELS = 128  # steps of the scale, as under `gradient`
MEAN = 3.5  # about the mean rating
SAMPLE = 2_000  # ratings in the sample of a reference
SAMPLE_ROWS = 60


def run() -> list[Row]:
    """Milliseconds and ratios of each kernel, with 20 and 64 factors."""
    ratings, source = ratings_at_hand()
    peak = multiply_adds_per_ns(THREADS)
    rows: list[Row] = []
    for factors in FACTORS:
        for work in (_gradient, _weighted_sums, _least_squares, _posterior, _top_ten):
            name, found = work(ratings, factors, peak)
            rows.append({"kernel": name, "factors": factors, "ratings": source} | found)
    name, found = _compressed_rows(ratings)
    return [*rows, {"kernel": name, "ratings": source} | found]


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for the kernels."""
    found = []
    for row in rows:
        factors = row.get("factors")
        if row["kernel"] == "gradient pass":
            bound = 2.2 if factors == 20 else 6.0
            time, part = float(str(row["float_ms"])), float(str(row["fma_percent"]))
            name = f"gradient pass, {factors} factors"
            found += [
                Bar(
                    f"{name}, floats, ms (or 30 % of the peak)",
                    time,
                    bound,
                    time <= bound or part >= 30,
                ),
                Bar.at_most(f"{name}, on the grid: times the floats'", row["times_float"], 1.5),
                Bar.at_most(f"{name}: noise, part of an iteration", row["noise_part"], 1 / 3),
            ]
        if row["kernel"] == "top ten":
            name = f"top ten of all users, {factors} factors: times a dense product's"
            found.append(Bar.at_most(name, row["times_dense"], 2))
    return found


def _gradient(ratings: Ratings, factors: int, peak: float) -> tuple[str, Row]:
    random = np.random.default_rng(1)
    users, items = (random.normal(size=(n, factors)) / factors**0.5 for n in ratings.shape)
    floats = FloatPass(
        ratings.by_user,
        ratings.values() - np.float32(MEAN),
        users.astype(np.float32),
        items.astype(np.float32),
        THREADS,
    )
    if pass_axis(ratings.shape) is not Axis.USERS:
        raise RuntimeError("the float pass goes by user, the other one must too")
    view = ValueView(grid=ValueGrid.for_scale(1, 5, LEVELS), axis=Axis.USERS)
    bases = (np.full(ratings.shape[0], MEAN), np.zeros(ratings.shape[1]))
    left, right = (
        AxisFeatures(rows, 1 / np.linalg.norm(rows, axis=1), base)
        for rows, base in zip((users, items), bases, strict=True)
    )
    sums = PredictionErrorSums(
        purpose="benchmark",
        errors=ErrorPass(view),
        users=left,
        items=right,
        pattern=ratings.pattern,
    )
    values = on_grid(ratings, view)
    times = best_of(
        {
            "float": floats.run,
            "grid": lambda: sums.tables(values, THREADS),
            "iteration": paper_iteration(ratings, factors),
            "scipy": scipy_iteration(ratings, factors),
            "noise": only_noise(ratings.shape[0], factors, THREADS),
        },
        rounds=25,
    )
    few = ratings.select(np.arange(len(ratings)) < SAMPLE)
    reference = best_of(
        {"": lambda: reference_tables(few, left, right, view.grid, first=0, margin=0.5)}, 3
    )
    work = 3 * len(ratings) * factors
    return "gradient pass", {
        "float_ms": _ms(times["float"]),
        "grid_ms": _ms(times["grid"]),
        "reference_ms": _ms(reference[""] * len(ratings) / SAMPLE),
        "times_float": _ratio(times["grid"], times["float"]),
        "fma_percent": round(100 * work / times["float"] / 1e9 / peak, 1),
        "iteration_ms": _ms(times["iteration"]),
        "scipy_iteration_ms": _ms(times["scipy"]),
        "times_scipy": _ratio(times["scipy"], times["iteration"]),
        "noise_ms": _ms(times["noise"]),
        "noise_part": _ratio(times["noise"], times["iteration"]),
    }


def _weighted_sums(ratings: Ratings, factors: int, _: float) -> tuple[str, Row]:
    features, side = FeatureGrid(), ratings.by_item
    view = ValueView(grid=ValueGrid.for_scale(1, 5), axis=Axis.ITEMS)
    profiles = np.random.default_rng(1).normal(size=(ratings.shape[0], factors))
    table = WeightedSums(
        purpose="benchmark",
        axis=Axis.ITEMS,
        pattern=ratings.pattern.by_item,
        view=view,
        features=features.quantise(profiles / np.linalg.norm(profiles, axis=1)[:, None]),
        feature_grid=features,
    )
    exact, values = ratings.scale.decode(side.codes), on_grid(ratings, view)
    sparse = scipy.sparse.csr_array(
        (exact.astype(np.float64), side.columns, side.starts), shape=ratings.shape[::-1]
    )
    times = best_of(
        {"taciturn": lambda: table.exact(values, THREADS), "scipy": lambda: sparse @ profiles}
    )
    return "weighted sums", {
        "taciturn_ms": _ms(times["taciturn"]),
        "scipy_ms": _ms(times["scipy"]),
        "times_scipy": _ratio(times["scipy"], times["taciturn"]),
    }


def least_squares_pass(
    ratings: Ratings, factors: int
) -> tuple[LeastSquaresState, Callable[[], object]]:
    """State after a first pass of least squares over both axes, and work that does another."""
    squares = LeastSquaresAlgorithm(
        PublicFacts.of(ratings, Unit.VALUE),
        None,
        factors=factors,
        iterations=1,
        strength=0.03,
        threads=THREADS,
    )
    read = Released(spec=None, tables=(ratings.values(),), noise_scales=(0.0,))
    nothing = Released(spec=None, tables=(), noise_scales=())
    state = squares.update(0, squares.initial_state(Seeds()), read)
    state = squares.update(1, state, nothing)
    return state, lambda: squares.update(1, state, nothing)


def _least_squares(ratings: Ratings, factors: int, peak: float) -> tuple[str, Row]:
    state, once = least_squares_pass(ratings, factors)
    side, others = ratings.by_user, state.items.copy()
    others[:, 0] = 1
    first = int(np.searchsorted(side.starts, side.columns.size // 2))

    def reference() -> None:
        for row in range(first, first + SAMPLE_ROWS):
            part = slice(side.starts[row], side.starts[row + 1])
            features = others[side.columns[part]]
            equations = features.T @ features + 6 * np.eye(factors + 1)
            np.linalg.solve(equations, features.T @ state.by_user[part])

    times = best_of({"taciturn": once, "reference": reference})
    in_sample = int(side.starts[first + SAMPLE_ROWS] - side.starts[first])
    whole = times["reference"] * 2 * len(ratings) / in_sample
    work = len(ratings) * (factors + 1) * (factors + 2)  # both axes, half of each Gram matrix
    return "least squares, both axes", _beside(times["taciturn"], whole, work, peak)


def _posterior(ratings: Ratings, factors: int, peak: float) -> tuple[str, Row]:
    problem = Problem(ratings, 5 * factors, factors, 3)
    keep = ratings.by_user.columns < SAMPLE_ROWS
    some = ratings.select(keep)
    few = Problem(some, 5 * factors, factors, 3)
    few.prior = type(few.prior)(
        means=few.prior.means[:SAMPLE_ROWS], covariance=few.prior.covariance
    )
    times = best_of({"taciturn": lambda: problem.solve(THREADS), "reference": few.reference}, 3)
    whole = times["reference"] * len(ratings) / len(some)
    work = len(ratings) * 5 * factors * (5 * factors / 2 + factors + 3)
    name = "posterior of items, five queries of each factor"
    return name, _beside(times["taciturn"], whole, work, peak)


def _top_ten(ratings: Ratings, factors: int, peak: float) -> tuple[str, Row]:
    random = np.random.default_rng(1)
    users, items = (random.normal(size=(n, factors)).astype(np.float32) for n in ratings.shape)
    index = ItemIndex(items, np.zeros(len(items), dtype=np.float32))
    starts, none = np.zeros(len(users) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    scores = np.empty(ratings.shape, dtype=np.float32)

    def reference() -> None:
        for user in users[:SAMPLE_ROWS]:
            found = items @ user
            best = np.argpartition(-found, 10)[:10]
            best[np.argsort(-found[best], kind="stable")]

    times = best_of(
        {
            "taciturn": lambda: index.best(users, 10, starts=starts, columns=none, threads=THREADS),
            "dense": lambda: np.matmul(users, items.T, out=scores),
            "reference": reference,
        },
        rounds=25,
    )
    whole = times["reference"] * len(users) / SAMPLE_ROWS
    return "top ten", {
        "taciturn_ms": _ms(times["taciturn"]),
        "dense_ms": _ms(times["dense"]),
        "reference_ms": _ms(whole),
        "times_dense": _ratio(times["taciturn"], times["dense"]),
        "times_reference": _ratio(whole, times["taciturn"]),
        "fma_percent": round(100 * scores.size * factors / times["taciturn"] / 1e9 / peak, 1),
    }


def _compressed_rows(ratings: Ratings) -> tuple[str, Row]:
    random = np.random.default_rng(1)
    order = random.permutation(len(ratings))
    users, items = ratings.rows()[order], ratings.by_user.columns[order]
    codes = ratings.by_user.codes[order]
    scipy_rows: Callable[[], object] = scipy.sparse.coo_array(
        (codes, (users, items)), shape=ratings.shape
    ).tocsr

    def rows() -> None:
        group(items, users, codes, ratings.shape[1]).transposed(ratings.shape[0])

    times = best_of({"taciturn": rows, "scipy": scipy_rows})
    return "compressed rows of shuffled triples, columns ascending", {
        "taciturn_ms": _ms(times["taciturn"]),
        "scipy_ms": _ms(times["scipy"]),
        "times_scipy": _ratio(times["scipy"], times["taciturn"]),
    }


def _beside(time: float, reference: float, work: float, peak: float) -> Row:
    return {
        "taciturn_ms": _ms(time),
        "reference_ms": _ms(reference),
        "times_reference": _ratio(reference, time),
        "fma_percent": round(100 * work / time / 1e9 / peak, 1),
    }


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 2)


def _ratio(one: float, other: float) -> float:
    return round(one / other, 3)
