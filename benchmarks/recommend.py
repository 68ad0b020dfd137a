"""Lists: one user and batches with every instruction set, requests, opening a release.

`one_us` is the ten best items of one user, beside a NumPy product of a matrix and a vector with
argpartition. `batch_ms` is those of 256 users, beside BLAS's product of two matrices alone. By
interest, items have as many interest factors as rating factors, and NumPy has a matrix of both.
`adds_us` is the time of `Recommender.recommend` of one user less that of the list, among a million
users. All of these have one thread, and so has BLAS. A release of a million users and 200,000 items
is opened in a process of its own: `open_s` is the time from the checked release to the first list,
and `copies` the memory that release and recommender take, divided by the profiles'. The last row is
the ten best items of all users of MovieLens-1M with 20 factors, against a loop over users in NumPy.
Both produce the same table and have all threads. Without MovieLens-1M in TACITURN_DATA, synthetic
ratings of its size are used. Best of several interleaved rounds.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.processes import python
from benchmarks.report import Bar, Row
from benchmarks.timing import best_of
from benchmarks.training import ratings_at_hand
from taciturn import _core
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.data.synthetic import synthetic_ratings
from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest
from taciturn.model.profiles import Profiles
from taciturn.model.score import By, Score
from taciturn.model.top_k import ItemIndex
from taciturn.recommend.serve import Recommender
from taciturn.release.bundle import Release
from taciturn.release.read import load_release
from taciturn.release.write import write_release
from taciturn.scale import Scale
from taciturn.solvers.gradient import GradientSolver
from taciturn.training.train import train

COUNT, BATCH = 10, 256
SIZES = ((3_706, 20), (62_000, 32), (200_000, 64))
USERS, ITEMS, FACTORS = 1_000_000, 200_000, 32
RATED = 50
ROUNDS = 7
ROUNDS_OF_ONE = {3_706: 2_000, 62_000: 400, 200_000: 60}
ROUNDS_OF_REQUEST = 300
LIMITED = ("avx512", "avx2")
"""Instruction sets with bars."""

_OPEN = """
import json, sys, time
from pathlib import Path

from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release

def resident():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmRSS"))

Recommender(load_release(Path(sys.argv[2]))).recommend(1)  # imports what is imported late
before, start = resident(), time.perf_counter()
release = load_release(Path(sys.argv[1]))
loaded = time.perf_counter()
forget_peak()
Recommender(release).recommend(7)
opened = time.perf_counter()
tables = release.model.users, release.model.items
size = sum(each.factors.nbytes + each.biases.nbytes + 8 * len(each) for each in tables)
print(json.dumps({
    "load_s": round(loaded - start, 3),
    "open_s": round(opened - loaded, 3),
    "copies": round((resident() - before) / size, 2),
    "peak_copies": round((peak() - before) / size, 2),
}))
"""


def run() -> list[Row]:
    """Times of lists and requests, and their ratios."""
    before = _core.instruction_set()
    try:
        with threadpool_limits(1, user_api="blas"):
            rows = [row for size in SIZES for by in By for row in _lists(*size, by)]
            rows += [*_requests(0), *_requests(SIZES[1][1]), *_table()]
    finally:
        _core.use_instruction_set(before)
    return [*rows, _opening(), _all_users()]


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for one user, batches, requests and opening."""
    found = []
    for row in rows:
        request, name = row.get("request"), str(row.get("set"))
        if "times_blas" in row and name in LIMITED:
            what = f"{row['items']} items × {row['factors']}, by {row['by']}, {name}"
            found += [
                Bar.at_most(f"one user, {what}: times NumPy's", row["times_numpy"], 1.5),
                Bar.at_most(f"256 users, {what}: times BLAS's product", row["times_blas"], 3),
            ]
        if "adds_us" in row and name in LIMITED:
            title = f"recommend, {name}: µs beside the list of one user"
            found.append(Bar.at_most(title, row["adds_us"], 300))
        if str(request).startswith("fold_in"):
            found.append(Bar.at_most(f"{request}: µs", row["us"], 300))
        if "open_s" in row:
            found += [
                Bar.at_most("opening a release of a million users: s", row["open_s"], 1),
                Bar.at_most("copies of its profiles in memory", row["copies"], 1.1),
            ]
    return found


def _profiles(rows: int, factors: int, interests: int = 0) -> Profiles:
    """Random profiles."""
    random = np.random.default_rng(rows)
    drawn = random.standard_normal((rows, 1 + factors + interests), dtype=np.float32)
    return Profiles(
        ids=pl.Series(np.arange(rows)),
        biases=drawn[:, 0].copy(),
        factors=drawn[:, 1 : 1 + factors].copy(),
        interests=drawn[:, 1 + factors :].copy() if interests else None,
    )


def _model(users: int, items: int, factors: int, interests: int = 0) -> FactorModel:
    interest = Interest(rating_weight=0.5, unseen_weight=0.1, regularization=0.1)
    return FactorModel(
        scale=Scale(low=1, high=5, step=1),
        mean=3.0,
        users=_profiles(users, factors, interests),
        items=_profiles(items, factors, interests),
        interest=interest if interests else None,
    )


def _with_each_set(name: str, work: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """The work with every instruction set, by the name of both."""

    def using(chosen: str) -> Callable[[], object]:
        def run() -> object:
            _core.use_instruction_set(chosen)
            return work()

        return run

    return {f"{name} {chosen}": using(chosen) for chosen in _core.instruction_sets()}


def _lists(count: int, factors: int, by: By) -> list[Row]:
    """Lists of one user and of a batch, with each instruction set."""
    model = _model(BATCH, count, factors, factors if by is By.INTEREST else 0)
    score, items = Score.of(model), model.item_profiles
    index, users = ItemIndex.of(score, model, items), score.users(model, np.arange(BATCH))
    matrix, scores = score.items(model, items)[0], np.empty((BATCH, count), dtype=np.float32)
    starts, none = np.zeros(BATCH + 1, dtype=np.int64), np.empty(0, dtype=np.int32)

    def best(number: int) -> None:
        part, rows = starts[: number + 1], users[:number]
        index.best(rows, COUNT, starts=part, columns=none, threads=1)

    def numpy_best() -> None:
        found = matrix @ users[0]
        top = np.argpartition(-found, COUNT)[:COUNT]
        top[np.argsort(-found[top], kind="stable")]

    one = best_of(
        {"numpy": numpy_best} | _with_each_set("one", lambda: best(1)), ROUNDS_OF_ONE[count]
    )
    batch = best_of(
        {"blas": lambda: np.matmul(users, matrix.T, out=scores)}
        | _with_each_set("batch", lambda: best(BATCH)),
        ROUNDS,
    )
    return [
        {
            "items": count,
            "factors": factors,
            "by": by.value,
            "set": name,
            "one_us": _us(one[f"one {name}"]),
            "numpy_us": _us(one["numpy"]),
            "times_numpy": _ratio(one[f"one {name}"], one["numpy"]),
            "batch_ms": round(1e3 * batch[f"batch {name}"], 2),
            "blas_ms": round(1e3 * batch["blas"], 2),
            "times_blas": _ratio(batch[f"batch {name}"], batch["blas"]),
        }
        for name in _core.instruction_sets()
    ]


def _requests(interests: int) -> list[Row]:
    """Requests other than lists of a user in the release, among 62,000 items."""
    count, factors = SIZES[1]
    random = np.random.default_rng(1)
    recommender = Recommender(_model(1, count, factors, interests), threads=1)
    rated = random.choice(count, RATED, replace=False).tolist()
    own = dict(zip(rated, random.integers(1, 6, RATED).astype(float).tolist(), strict=True))
    mine = recommender.fold_in(own)
    calls: dict[str, Callable[[], object]] = {
        "fold_in": lambda: recommender.fold_in(own),
        "recommend_profile": lambda: recommender.recommend_profile(
            mine.bias, mine.factors, interest=mine.interest, ratings=own
        ),
        "similar": lambda: recommender.similar(7),
    }
    times = best_of(calls, ROUNDS_OF_REQUEST)
    ending = ", with interest" if interests else ""
    return [{"request": f"{name}{ending}", "us": _us(times[name])} for name in calls]


def _table() -> list[Row]:
    """Table of one user's list, and the list alone, with each instruction set."""
    model = _model(USERS, ITEMS, FACTORS)
    recommender = Recommender(model, threads=1)
    index = ItemIndex(model.item_profiles.factors, model.item_profiles.biases)
    user, starts = model.user_profiles.factors[7:8], np.zeros(2, dtype=np.int64)
    none = np.empty(0, dtype=np.int32)

    def best() -> None:
        index.best(user, COUNT, starts=starts, columns=none, threads=1)

    calls = _with_each_set("list", best)
    calls |= _with_each_set("table", lambda: recommender.recommend(7, COUNT))
    # Each table follows a list with the same instruction set, as one request follows another.
    calls = dict(sorted(calls.items(), key=lambda call: call[0].partition(" ")[::-1]))
    times = best_of(calls, ROUNDS_OF_REQUEST)
    return [
        {
            "request": f"recommend, 1 of {USERS:,} users × {ITEMS:,} items",
            "set": name,
            "list_us": _us(times[f"list {name}"]),
            "table_us": _us(times[f"table {name}"]),
            "adds_us": _us(times[f"table {name}"] - times[f"list {name}"]),
        }
        for name in _core.instruction_sets()
    ]


def _opening() -> Row:
    """Opening a large release, with the profiles of a small training replaced."""
    solver = GradientSolver(factors=FACTORS, iterations=1)
    fit = solver.fit(synthetic_ratings("10k"), Budget.from_epsilon(1, 1e-5))
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    large = _model(USERS, ITEMS, FACTORS)
    with tempfile.TemporaryDirectory() as folder:
        small_one, large_one = Path(folder) / "small", Path(folder) / "large"
        write_release(fit, certificate, small_one)
        model = replace(fit.model, users=large.users, items=large.items)
        write_release(replace(fit, model=model), certificate, large_one)
        found: Row = python(_OPEN, str(large_one), str(small_one))
    return {"release": f"{USERS:,} users × {ITEMS:,} items × {FACTORS}"} | found


def _all_users() -> Row:
    """Seconds for all users of MovieLens-1M, and the speed-up of taciturn."""
    ratings, source = ratings_at_hand()
    with tempfile.TemporaryDirectory() as folder:
        train(
            ratings,
            GradientSolver(factors=20),
            Budget.from_epsilon(10, 1e-5),
            output=Path(folder) / "release",
        )
        release = load_release(Path(folder) / "release")
    recommender = Recommender(release)
    users = release.model.user_profiles.ids
    best = best_of(
        {"taciturn": lambda: recommender.recommend(users, COUNT), "numpy": lambda: _loop(release)},
        ROUNDS,
    )
    return {
        "ratings": source,
        "users": len(users),
        "taciturn_s": round(best["taciturn"], 4),
        "numpy_s": round(best["numpy"], 4),
        "times_numpy": round(best["numpy"] / best["taciturn"], 1),
    }


def _loop(release: Release) -> pl.DataFrame:
    users, items = release.model.user_profiles, release.model.item_profiles
    ids, rows = items.ids.to_numpy(), []
    for user, bias, factors in zip(users.ids, users.biases, users.factors, strict=True):
        scores = items.factors @ factors + items.biases + bias + release.model.mean
        top = np.argpartition(-scores, COUNT)[:COUNT]
        top = top[np.argsort(-scores[top], kind="stable")]
        rows += [
            (user, item, score, rank)
            for rank, (item, score) in enumerate(
                zip(ids[top].tolist(), scores[top].tolist(), strict=True), start=1
            )
        ]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "score", "rank"], orient="row")


def _us(seconds: float) -> float:
    return round(1e6 * seconds, 1)


def _ratio(one: float, other: float) -> float:
    return round(one / other, 2)
