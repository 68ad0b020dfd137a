"""`taciturn paper report`: one self-contained page with all figures in a folder."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

from taciturn._internal import strict_json
from taciturn._internal.files import write_file
from taciturn._internal.html import page, picture, table
from taciturn._version import __version__
from taciturn.errors import InvalidDocument
from taciturn.reproduction.published import Quantity
from taciturn.reproduction.readings import GUESSES, reading
from taciturn.reproduction.reproduce import Reproduced

LEAK = "leak.json"

_NAMES = {
    Quantity.RMSE: "training RMSE",
    Quantity.EPSILON_PAPER: "overall ε (paper's formula)",
    Quantity.MS: "ms per iteration",
}


def write_report(folder: Path, results: Sequence[Reproduced]) -> Path:
    """Write report.html from the figures in a folder and, if present, leak.json."""
    if not results and not (folder / LEAK).exists():
        raise InvalidDocument(
            f"{folder} has no figures yet; run, for example: taciturn paper figure 4 -o {folder}"
        )
    parts = [
        _introduction(results),
        _overview(results),
        *(_section(result) for result in results),
        _leak(folder),
        "<h2>Assumptions</h2>",
        f"<ul>{''.join(f'<li>{escape(guess)}</li>' for guess in GUESSES)}</ul>",
        f"<p class='note'>Written by taciturn {__version__}.</p>",
    ]
    path = folder / "report.html"
    write_file(path, page("The paper, reproduced", parts), replace=True)
    return path


def _introduction(results: Sequence[Reproduced]) -> str:
    return (
        "<p>Mugdho and Imtiaz, <cite>Privacy-Preserving Matrix Factorization for Recommendation "
        "Systems using Gaussian Mechanism</cite>, train recommenders by gradient descent with "
        "noise on the gradient of the user profiles. This page reproduces its experiments. Lines "
        "are our results, open circles the paper's points. Two quantities that the paper lacks are "
        "added: the error on held-out ratings, and the exact ε of the same noise.</p>"
        f"<p class='note'>{len(results)} of 27 figures. Errors are exact and were measured on "
        "public data.</p>"
    )


def _overview(results: Sequence[Reproduced]) -> str:
    rows = []
    for result in results:
        name = f"Figure {result.figure.number}", result.figure.title, result.settings.protocol.value
        if result.obstacle:
            rows.append((*name, f"not compared: {result.obstacle}", "", ""))
        rows += [
            (*name, _NAMES[quantity], *_range(values))
            for quantity in (Quantity.RMSE, Quantity.EPSILON_PAPER)
            if (values := result.differences(quantity))
        ]
    head = ("", "", "protocol", "quantity", "largest difference", "mean difference")
    return (
        f"<h2>Differences from the paper</h2>{table(head, rows)}<p class='note'>The number of "
        "iterations is computed from the paper's overall ε, so differences in ε only check its "
        "formula and the rounding.</p>"
    )


def _range(differences: Sequence[float]) -> tuple[str, str]:
    return f"{max(map(abs, differences)):.4f}", f"{fmean(differences):+.4f}"


def _section(result: Reproduced) -> str:
    settings = result.settings
    note = f"Protocol {settings.protocol}; {_ends(result)}."
    if settings.seeds > 1:
        note += f" Means over {settings.seeds} seeds; bars are standard deviations."
    return (
        f"<h2 id='figure-{result.figure.number}'>Figure {result.figure.number}: "
        f"{escape(result.figure.title)}</h2>"
        f"{_image(result.path('svg'), f'Figure {result.figure.number}: {result.figure.title}')}"
        f"<p>{escape(reading(result))}</p>{_differences(result)}"
        f"<p class='note'>{escape(note)}</p>"
    )


def _ends(result: Reproduced) -> str:
    if result.ratings is None:
        return "nothing was trained; the numbers of iterations are the paper's"
    if result.settings.stop == "paper":
        return "runs end at the paper's number of iterations"
    return "runs end by the stopping rule"


def _differences(result: Reproduced) -> str:
    rows = []
    for quantity, name in _NAMES.items():
        series = dict.fromkeys(p.series for p in result.points if p.quantity is quantity)
        for each in series:
            found = [
                point.y - point.paper
                for point in result.points
                if (point.series, point.quantity) == (each, quantity) and point.paper is not None
            ]
            if found:
                rows.append((each, name, str(len(found)), *_range(found)))
    if not rows:
        return ""
    head = ("line", "quantity", "points", "largest difference", "mean difference")
    return f"<details><summary>Differences by line</summary>{table(head, rows)}</details>"


def _leak(folder: Path) -> str:
    path = folder / LEAK
    if not path.exists():
        return (
            "<h2>The gap in the proof</h2><p>Not measured yet. To add this section, run "
            "<code>taciturn paper leak -o DIR</code> with this folder, then the report again.</p>"
        )
    leak = strict_json.read(path)
    try:
        return _leak_section(leak, folder)
    except (KeyError, TypeError, ValueError):
        raise InvalidDocument(
            f"{path} was not written by taciturn paper leak; run it again"
        ) from None


def _leak_section(leak: dict[str, Any], folder: Path) -> str:
    cases = [
        (f"{case['claimed_epsilon']:.4f}", f"{case['true_epsilon']:.4f}")
        for case in leak["counterexample"]["cases"]
    ]
    items = [
        (
            str(item["item_id"]),
            f"{item['raters']:,}",
            f"{item['delta_at_claim']:.4f}" if item["delta_at_claim"] else "no violation found",
            f"{item['delta_at_claim_lower']:.4f}" if item["delta_at_claim"] else "",
            f"{item['sqrt_q']['least']:.4f} to {item['sqrt_q']['largest']:.4f}",
        )
        for item in leak["items"]
    ]
    head = ("item", "raters", "δ at the claimed ε", "lower bound", "√Q")
    sound = leak["gradient"]
    return (
        "<h2 id='leak'>The gap in the proof</h2>"
        "<p>The theorem bounds every step as if the item profiles did not depend on the changed "
        "rating. They do: they are updated with the exact gradient, without noise. For four users "
        "and one item, the true ε of the final profiles can be computed:</p>"
        f"{table(('claimed ε', 'true ε'), cases)}"
        f"<p>On {escape(str(leak['dataset']))}, {leak['iterations']} iterations at ε_i = "
        f"{leak['epsilon_i']:g} ({escape(str(leak['protocol']))}), one rating of an item was "
        f"changed and {leak['transcripts']} runs were simulated on each of the two neighbouring "
        f"datasets. The theorem's proof gives δ = {leak['claimed_delta']:g} at ε = "
        f"{leak['claimed_epsilon']:.2f} and √Q of at most {leak['claimed_mu']:.4f}, for an "
        "observer who knows the initial profiles and sees the user profiles after every "
        "iteration:</p>"
        f"{table(head, items)}"
        f"{_image(folder / 'leak.svg', 'privacy losses against iterations')}"
        f"<p>Lower bounds hold with {leak['confidence']:.0%} confidence. The same experiment on "
        f"<code>gradient</code>, with noise on the gradients of both axes, gives √Q of at most "
        f"{sound['sqrt_q_largest']:.4f}; its ledger records μ = {sound['mu']:.4f}"
        f"{', which is EXCEEDED' if sound['exceeds'] else ''}.</p>"
    )


def _image(path: Path, name: str) -> str:
    try:
        return picture(path.read_bytes(), name)
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror}") from None
