"""Train every case with the test noise and keep all numbers: the worker of compare_trees.py.

Runs in the environment of one tree; knows the names that the project has had.
"""

import hashlib
import importlib.util
import json
import sys
from typing import Any

import numpy as np
import polars as pl

KEY = hashlib.sha256(b"tacit insecure test noise 5").digest()
"""Key of the test noise before the project was renamed, whose name is part of it."""

NUMERIC = ("sensitivity", "noise_scale", "coordinates", "sampler_error", "sampler_tail")


def ratings(load: Any) -> Any:
    """Synthetic ratings with some structure, some users and items rated once only."""
    random = np.random.default_rng(7)
    users, items = 300, 120
    mask = random.random((users, items)) < random.uniform(0.02, 0.6, (1, items))
    mask[np.arange(users), np.arange(users) % items] = True
    rows, columns = np.nonzero(mask)
    taste = random.normal(size=(users, 3)) @ random.normal(size=(3, items))
    values = np.clip(np.rint(3.2 + taste[rows, columns] + random.normal(size=rows.size)), 1, 5)
    frame = pl.DataFrame({"user_id": rows + 1, "item_id": columns + 1, "rating": values})
    return load(frame, scale="1:5:1")


class Kept:
    """Observer of a gate that keeps what is released."""

    def __init__(self) -> None:
        self.tables: list[Any] = []

    def asked(self, *given: Any) -> None:
        """Nothing to do."""

    def released(self, queries: Any, events: Any, tables: Any, released: Any) -> Any:
        """Keep exact and noisy tables."""
        for exact, noisy in zip(tables, released, strict=True):
            self.tables += [exact.copy(), noisy.copy()]
        return released


def main(file: str, cases: str) -> None:
    """Train all cases and write one file of arrays."""
    package = "taciturn" if importlib.util.find_spec("taciturn") else "tacit"

    def name(path: str, *alternatives: str) -> Any:
        for each in (path, *alternatives):
            module, _, member = each.rpartition(".")
            try:
                return getattr(importlib.import_module(f"{package}.{module}"), member)
            except (ImportError, AttributeError):
                continue
        raise LookupError(path)

    budget_type = name("privacy.budget.Budget", "accounting.budget.Budget")
    session_type = name("solvers.contract.Session")
    test_noise = name(
        "privacy.noise.source.InsecureTestNoise", "mechanisms.noise.InsecureTestNoise"
    )
    observed = name("privacy.mechanism._observed", "mechanisms.gate._observed")
    make_solver = name("solvers.names.make_solver", "solvers.catalog.make_solver")
    data = ratings(name("data.load"))
    plan, found = json.loads(cases), {}
    for case, options in plan["cases"].items():
        given = dict(options)
        solver = make_solver(given.pop("solver"), **given)
        needs_budget = solver.is_private and options.get("epsilon_i") is None
        budget = budget_type.from_epsilon(8.0, 1e-5) if needs_budget else None
        for threads in plan["threads"]:
            kept = Kept()
            noise = test_noise(5)
            noise._begin(KEY)
            session = session_type(seed=3, threads=threads, noise=noise)
            with observed(kept):
                fit = solver.fit(data, budget, session)
            here = f"{case} / {threads}"
            for place, table in enumerate(kept.tables):
                found[f"{here} / table {place}"] = table
            events = [event for event in fit.ledger.events if hasattr(event, "sensitivity")]
            facts = [[getattr(event, fact) for fact in NUMERIC] for event in events]
            found[f"{here} / events"] = np.array(facts, dtype=np.float64)
            found |= {f"{here} / {key}": array for key, array in arrays(fit).items()}
    np.savez(file, **found)


def arrays(fit: Any) -> dict[str, Any]:
    """Every number of a fit; under its old name the project kept the model's fields in the fit."""
    if hasattr(fit, "model"):
        model, users, items = fit.model, fit.owner_model.users, fit.owner_model.items
    else:
        model, users, items = fit, fit.known_users, fit.known_items
    numbers = {"mean": np.float64(model.mean)}
    if model.residual_variance is not None:
        numbers["residual variance"] = np.float64(model.residual_variance)
    if model.prior is not None:
        prior = (model.prior.residual_variance, *model.prior.variances)
        numbers["prior"] = np.array(prior, dtype=np.float64)
    for side, profiles in (("users", users), ("items", items)):
        for part in ("biases", "factors", "bias_variances", "variances"):
            array = getattr(profiles, part)
            if array is not None:
                numbers[f"{side} {part}"] = array
    return numbers


if __name__ == "__main__":
    main(*sys.argv[1:])
