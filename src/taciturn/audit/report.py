"""Reports of audits: tables, plots and a self-contained HTML page. Owner-only."""

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from taciturn._internal.drawing import COLOURS, canvas, write_drawn
from taciturn._internal.files import prepare_folder
from taciturn._internal.html import page, picture, table
from taciturn._version import __version__
from taciturn.audit.attack import Attack
from taciturn.audit.one_run import OneRun
from taciturn.audit.two_worlds import TwoWorlds, View
from taciturn.audit.verdict import OWNER
from taciturn.solvers.solver import Solver

Result = TwoWorlds | OneRun | Attack
Row = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class _Curve:
    """Plot data: scores of both datasets, claimed μ, and a point with bounds on its rates."""

    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]
    mu: float
    words: str
    point: tuple[float, float, float, float] | None = None


def write_report(folder: Path, result: Result) -> list[Path]:
    """Write audit.json, .png, .svg and .html; existing files are replaced."""
    prepare_folder(folder)
    return write_drawn(
        folder / "audit",
        result.to_dict(),
        draw(result),
        lambda svg: _page(result, svg),
        is_private=True,
    )


def rows(result: Result) -> list[Row]:
    """Rows (name, value, remark) of the result table."""
    claim = result.claim
    found: list[Row] = [
        ("claimed epsilon", _number(claim.epsilon), _claimed(result)),
        ("claimed mu", _number(claim.mu), "parameter of the claimed trade-off curve"),
    ]
    if isinstance(result, Attack):
        return found + _attack_rows(result)
    facts = result.to_dict()
    confidence = f"with confidence {facts['confidence']:g}"
    found += [
        ("lower bound on mu", _number(result.mu), f"{confidence}; decides the verdict"),
        ("largest possible bound", _number(result.mu_most), "if the attacker makes no mistake"),
        (
            "lower bound on epsilon",
            _number(facts["lower_bound"]),
            "at delta, without assumptions; usually far below the truth",
        ),
        (
            "Gaussian bound on epsilon",
            _number(facts["lower_bound_gaussian"]),
            f"assuming that {facts['lower_bound_gaussian_assumes']}",
        ),
    ]
    if isinstance(result, TwoWorlds):
        wrong = result.errors
        found += [
            ("runs on each dataset", f"{result.plan.runs:,}", result.case.pair.words),
            ("false positives", f"{wrong[0]:,}", "runs on the first dataset taken for the second"),
            ("false negatives", f"{wrong[1]:,}", "runs on the second dataset taken for the first"),
        ]
    else:
        found += [
            ("canaries", f"{result.coins.size:,}", "ratings set by secure coins"),
            ("guesses", f"{result.guesses:,}", "number fixed in advance"),
            ("correct", f"{result.correct:,}", "half are expected by chance"),
        ]
    return found


def _claimed(result: Result) -> str:
    claim = result.claim
    how = _solver(result).claim
    return f"at delta = {claim.delta:g}, {claim.status}{', ' + how if how else ''}"


def _solver(result: Result) -> Solver:
    return result.case.solver if isinstance(result, TwoWorlds) else result.solver


def weakness(result: Result) -> str | None:
    """Warning that an audit was too small to refute its claim, or None."""
    claimed = result.mu if isinstance(result, Attack) else result.claim.mu
    if result.mu_most > claimed:
        return None
    advice = "raise --runs"
    if not isinstance(result, TwoWorlds):
        size = "--targets" if isinstance(result, Attack) else "--canaries"
        advice = f"raise {size} or lower --epsilon"
    return (
        f"this audit could not have refuted the claim: its largest possible bound on mu is "
        f"{result.mu_most:.4f}, and {claimed:.4f} is claimed; {advice}"
    )


def check_rows(result: Result) -> list[Row]:
    """Rows (name, outcome, explanation) of the checks; only audits with many runs have them."""
    if not isinstance(result, TwoWorlds):
        return []
    return [
        (each.name, "passed" if each.passed else "FAILED", each.words) for each in result.findings
    ]


def _attack_rows(result: Attack) -> list[Row]:
    low, high = result.targets.low, result.targets.high
    either = f"{high:g} or absent" if low is None else f"{low:g} or {high:g}"
    rate = result.true_positive_rate
    error = "too few targets" if rate is None else f"± {result.true_positive_rate_error:.4f}"
    return [
        ("mu between values", _number(result.mu), f"for a rating that is {either}"),
        (
            "advantage",
            f"{result.advantage:.4f}",
            f"± {result.advantage_error:.4f}; expected to be at most {result.advantage_bound:.4f}",
        ),
        (
            "true-positive rate",
            "" if rate is None else f"{rate:.4f}",
            f"{error}; expected to be at most {result.true_positive_rate_bound:.4f} at a "
            "false-positive rate of 1%",
        ),
        (
            "lower bound on mu",
            _number(result.lower_bound_mu),
            "on the mu between values; from all guesses",
        ),
        (
            "targets",
            f"{result.coins.size:,}",
            f"ratings set by secure coins; {2 * result.shadows} shadow models",
        ),
        ("existence", "", result.existence),
    ]


def draw(result: Result) -> Any:
    """Figure of the measured trade-off between error rates, with the claimed curve.

    The left panel has linear axes. The right one has probit axes, on which Gaussian curves are
    straight and small rates are visible.
    """
    curve = _curve(result)
    drawing = canvas(11.0, 5.5)
    for panel, is_probit in zip(drawing.subplots(1, 2), (False, True), strict=True):
        _draw_curve(panel, curve)
        ends = (0.001, 0.999) if is_probit else (0.0, 1.0)
        if is_probit:
            panel.set_xscale("function", functions=(_probit, ndtr))
            panel.set_yscale("function", functions=(_probit, ndtr))
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_ticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        else:
            panel.legend()
        panel.set(xlabel="false-positive rate", ylabel="false-negative rate", xlim=ends, ylim=ends)
        panel.grid(alpha=0.3)
    drawing.suptitle(
        "The claim is violated if the point and both of its bounds lie in the shaded area"
        if curve.point
        else "One run: the measured curve is uncertain; the verdict depends on correct guesses"
    )
    return drawing


_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def _probit(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(ndtri(np.clip(rates, 1e-9, 1 - 1e-9)))


def _draw_curve(panel: Any, curve: _Curve) -> None:
    rates = ndtr(np.linspace(-4, 4, 401))
    panel.plot(rates, 1 - rates, color="#999999", linestyle=":", label="guessing")
    claimed = ndtr(-ndtri(rates) - curve.mu)
    panel.plot(rates, claimed, color=COLOURS[0], label=f"claimed: μ = {curve.mu:.4g}")
    panel.fill_between(rates, claimed, color=COLOURS[0], alpha=0.1)
    panel.step(*_measured(curve), where="post", color=COLOURS[1], label=curve.words)
    if curve.point:
        false_positive, false_negative, false_positive_upper, false_negative_upper = curve.point
        panel.errorbar(
            [false_positive],
            [false_negative],
            xerr=[[0], [false_positive_upper - false_positive]],
            yerr=[[0], [false_negative_upper - false_negative]],
            color=COLOURS[6],
            marker="o",
            capsize=3,
            label="at the threshold, with upper bounds",
        )


def _curve(result: Result) -> _Curve:
    if isinstance(result, TwoWorlds):
        runs, (false_positives, false_negatives) = result.plan.runs, result.errors
        point = false_positives / runs, false_negatives / runs, *result.rates
        seen = "transcript" if result.plan.view is View.TRANSCRIPT else "release"
        words = f"attacker who sees the {seen}"
        return _Curve(*result.scores, result.claim.mu, words, point)
    mu = result.mu if isinstance(result, Attack) else result.claim.mu
    words = "attacker who sees the " + ("release" if isinstance(result, Attack) else "transcript")
    return _Curve(result.scores[~result.coins], result.scores[result.coins], mu, words)


def _measured(curve: _Curve) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """False-positive and false-negative rates at every threshold."""
    thresholds = np.unique(np.concatenate([curve.first, curve.second, [-math.inf]]))[::-1]
    first, second = np.sort(curve.first), np.sort(curve.second)
    false_positive = 1 - np.searchsorted(first, thresholds, side="right") / max(1, first.size)
    false_negative = np.searchsorted(second, thresholds, side="right") / max(1, second.size)
    return false_positive, false_negative


_READING = """<h2>How to read this page</h2>
<p>An attacker guesses which of two neighbouring datasets a run was trained on, and knows both of
them. The datasets differ by one unit of the claim: the value of one rating, the presence of one
rating, or the presence of one user. A false positive takes the first dataset for the second, a
false negative the second for the first. The claim is a curve: for every false-positive rate, the
lowest false-negative rate that any attacker can have. Its parameter is μ, and μ = 0 means that an
attacker can only guess. The lower bound on μ follows from the attacker's success rate, with the
stated confidence and without assumptions. The claim is violated only if this bound exceeds the
claimed μ or a check of single runs fails. The bound on ε is far below the truth for this few runs,
even if the claim is violated.</p>
<p>No evidence does not mean private. Another pair of datasets, another attacker or more runs may
reveal more, and an audit covers training only.</p>"""


def _page(result: Result, svg: bytes) -> bytes:
    solver, facts = _solver(result), result.to_dict()
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in result.reasons)
    weak = weakness(result)
    options = [
        (name, "" if value is None else str(value)) for name, value in facts["settings"].items()
    ]
    parts = [
        f"<p><strong>Verdict: {result.verdict.words}.</strong></p><ul>{reasons}</ul>",
        f"<p>{escape(weak)}</p>" if weak else "",
        f"<p class='note'>{OWNER}</p>",
        picture(svg, "trade-off between false-positive and false-negative rates"),
        table(("", "", ""), rows(result)),
    ]
    if checks := check_rows(result):
        parts += ["<h2>Checks of single runs</h2>", table(("check", "", ""), checks)]
    parts += [
        _READING,
        f"<h2>Configuration</h2><p>Solver {solver.name} of Taciturn {__version__}:</p>",
        table(("setting", "value"), options),
    ]
    return page(f"Audit of {solver.name}: {facts['audit']}", parts)


def _number(value: float) -> str:
    return f"{value:.4f}"
