"""`taciturn demo`: the whole workflow on built-in synthetic ratings."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import emit_json, say, table
from taciturn.cli.options import Json
from taciturn.cli.progress import iterations_bar

EPSILON, DELTA = 1.0, 1e-5
HOLDOUT = 0.1
USER = 42


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder to keep the release in. Default: the release is deleted.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Train, release, verify and recommend on a million synthetic ratings."""
    from taciturn.accounting.budget import Budget
    from taciturn.data.splits import random_split
    from taciturn.data.synthetic import synthetic_ratings
    from taciturn.errors import CheckFailed
    from taciturn.evaluate.metrics import rmse
    from taciturn.recommend.serve import Recommender
    from taciturn.release.read import load_release
    from taciturn.release.verify import verify_release
    from taciturn.solvers.catalog import make_solver
    from taciturn.training.train import train

    def tell(*lines: str) -> None:
        if not json:
            for line in lines:
                say(line)

    tell("Taciturn demo: a private recommender from a million synthetic ratings", "")
    ratings = synthetic_ratings("1m")
    budget = Budget.from_epsilon(EPSILON, DELTA)
    with tempfile.TemporaryDirectory() as folder:
        place = output or Path(folder) / "release"
        with iterations_bar("als") as progress:
            trained = train(
                ratings,
                make_solver("als"),
                budget,
                output=place,
                holdout=HOLDOUT,
                progress=progress,
            )
        held_in, held_out = random_split(ratings, HOLDOUT, 0)
        errors: dict[str, float | None] = {"als": trained.rmse_test}
        for name in ("bias", "non-private", "non-private-bias"):
            solver = make_solver(name)
            fit = solver.fit(held_in, budget if solver.is_private else None)
            errors[name] = rmse(fit, held_out)
        tell(
            "1. Accuracy on held-out ratings (owner-only; lower is better):",
            table(_accuracy(errors)),
            "",
            f"2. The release's guarantee, computed from the {len(trained.certificate.events)} "
            "releases of its ledger:",
            "",
            trained.certificate.to_text(),
            "3. Anyone can check it. `taciturn verify` reports:",
        )
        verdict = verify_release(place)
        tell(table([(c.name, "ok" if c.passed else "FAILED", c.detail) for c in verdict.checks]))
        release = load_release(place)
        best = Recommender(release).recommend([USER], 5, explain=True)
        rows = best.select("item_id", "score", "rank", "reason").to_dicts()
        tell(
            "",
            f"4. A third party recommends items to user {USER} from the release alone:",
            table(
                [
                    (f"{r['rank']}.", f"{r['score']:.2f}", f"item {r['item_id']}  {r['reason']}")
                    for r in rows
                ]
            ),
            "",
            f"The release is at {place}."
            if output
            else "Keep the release with -o DIR; train on your own ratings with taciturn train.",
        )
    if not verdict.passed:
        raise CheckFailed("the demo's release failed verification")
    if json:
        emit_json(_document(trained.certificate.to_dict(), errors, rows, verdict.passed))


def _accuracy(errors: dict[str, float | None]) -> list[tuple[str, str, str]]:
    remarks = {
        "non-private": "no privacy: the same model without noise",
        "als": f"private at epsilon = {EPSILON:g}: the release",
        "bias": f"private at epsilon = {EPSILON:g}: biases only, no factors",
        "non-private-bias": "no privacy: biases only",
    }
    return [(name, f"{errors[name]:.4f}", remark) for name, remark in remarks.items()]


def _document(
    certificate: dict[str, Any],
    errors: dict[str, float | None],
    rows: list[dict[str, Any]],
    passed: bool,
) -> dict[str, Any]:
    return {
        "view": "owner",
        "rmse_test": errors,
        "certificate": certificate,
        "verified": passed,
        "user_id": USER,
        "items": rows,
    }
