"""Short trainings with known noise."""

from pathlib import Path
from typing import Any

from taciturn.data.ratings import Ratings
from taciturn.training.outputs import Outputs
from taciturn.training.train import Trained, train
from tests.known_noise import known_noise
from tests.solvers.helpers import BUDGET, random_ratings, small_solver

RATINGS = random_ratings(1, users=40, items=25)


def go(
    output: Path,
    name: str = "gradient",
    ratings: Ratings = RATINGS,
    private: dict[str, Any] | None = None,
    **options: Any,
) -> Trained:
    """Train with known noise, with `private` options of the outputs."""
    solver = options.pop("solver", None) or small_solver(name, iterations=6)
    facts: dict[str, Any] = {"budget": BUDGET if solver.is_private else None, "seed": 3}
    outputs = Outputs(release=output, **(private or {}))
    with known_noise(5):
        return train(ratings, solver, output=outputs, **(facts | options))


def stop_at(number: int) -> Any:
    """Progress function that interrupts as Ctrl-C does."""

    def progress(done: int, total: int) -> None:
        if done == number:
            raise KeyboardInterrupt

    return progress
