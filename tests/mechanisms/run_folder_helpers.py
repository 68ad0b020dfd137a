"""Small runs in run folders."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.run_folder import RunFolder
from tests.mechanisms.noise_helpers import (
    QUERY,
    SUMS,
    FixedSums,
    random_values,
    release,
)

DATA = [b"these ratings", b"this configuration"]


def folder(path: Path, **options: Any) -> RunFolder:
    """A new run folder with test noise, unless told otherwise."""
    facts: dict[str, Any] = {"data": DATA, "noise": InsecureTestNoise(4)}
    return RunFolder.create(path, **(facts | options))


def run_steps(gate: Gate, steps: int) -> list[np.ndarray]:
    """Release sums that depend on earlier releases, as a solver does."""
    results: list[np.ndarray] = []
    for step in range(steps):
        values = random_values(SUMS, seed=int(abs(results[-1]).sum()) % 1000 if results else 0)
        table = FixedSums(replace(QUERY, purpose=f"step {step}"), SUMS.exact(values).tables[0])
        results.append(release(gate, table, share=0.05))
    return results
