"""Audits as tables, drawings and one self-contained page: the owner's own view."""

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
    """What is drawn: scores of both kinds, the claimed μ, and a point with bounds on its rates."""

    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]
    mu: float
    words: str
    point: tuple[float, float, float, float] | None = None


def write_report(folder: Path, result: Result) -> list[Path]:
    """Write audit.json, .png, .svg and .html; older ones are replaced."""
    prepare_folder(folder)
    return write_drawn(
        folder / "audit",
        result.to_dict(),
        draw(result),
        lambda svg: _page(result, svg),
        is_private=True,
    )


def rows(result: Result) -> list[Row]:
    """Return the result as (name, value, remark)."""
    claim = result.claim
    found: list[Row] = [
        ("claimed epsilon", _number(claim.epsilon), _claimed(result)),
        ("claimed mu", _number(claim.mu), "the whole trade-off curve"),
    ]
    if isinstance(result, Attack):
        return found + _attack_rows(result)
    facts = result.to_dict()
    confidence = f"with confidence {facts['confidence']:g}"
    found += [
        ("lower bound on mu", _number(result.mu), f"{confidence}; decides the verdict"),
        ("the most it could be", _number(result.mu_most), "had the attacker made no mistake"),
        (
            "lower bound on epsilon",
            _number(facts["lower_bound"]),
            "at delta, without assumption; far below the truth",
        ),
        (
            "Gaussian bound on epsilon",
            _number(facts["lower_bound_gaussian"]),
            f"if {facts['lower_bound_gaussian_assumes']}",
        ),
    ]
    if isinstance(result, TwoWorlds):
        wrong = result.errors
        found += [
            ("runs in each world", f"{result.plan.runs:,}", result.case.pair.words),
            ("false alarms", f"{wrong[0]:,}", "runs of the first world taken for the second"),
            ("misses", f"{wrong[1]:,}", "runs of the second world taken for the first"),
        ]
    else:
        found += [
            ("canaries", f"{result.coins.size:,}", "ratings that secure coins decided"),
            ("guesses", f"{result.guesses:,}", "as many as was fixed beforehand"),
            ("correct", f"{result.correct:,}", "half of them by chance alone"),
        ]
    return found


def _claimed(result: Result) -> str:
    claim = result.claim
    how = _solver(result).claim
    return f"at delta = {claim.delta:g}, {claim.status}{', ' + how if how else ''}"


def _solver(result: Result) -> Solver:
    return result.case.solver if isinstance(result, TwoWorlds) else result.solver


def weakness(result: Result) -> str | None:
    """Return that an audit was too small to refute its claim, if it was."""
    claimed = result.mu if isinstance(result, Attack) else result.claim.mu
    if result.mu_most > claimed:
        return None
    more = "runs" if isinstance(result, TwoWorlds) else "canaries or a smaller epsilon"
    return (
        f"this audit could not have refuted the claim whatever it saw: at most mu = "
        f"{result.mu_most:.4f} can be shown, {claimed:.4f} is claimed; take more {more}"
    )


def check_rows(result: Result) -> list[Row]:
    """Return the checks of an audit of two worlds; others have none."""
    if not isinstance(result, TwoWorlds):
        return []
    return [
        (each.name, "passed" if each.passed else "FAILED", each.words) for each in result.findings
    ]


def _attack_rows(result: Attack) -> list[Row]:
    low, high = result.targets.low, result.targets.high
    either = f"{high:g} or not there" if low is None else f"{low:g} or {high:g}"
    return [
        ("mu between both", _number(result.mu), f"of a rating that is {either}"),
        (
            "advantage",
            f"{result.advantage:.4f}",
            f"± {result.advantage_error:.4f}; at most {result.advantage_bound:.4f} is possible",
        ),
        (
            "hits at 1 % false alarms",
            "" if result.hits is None else f"{result.hits:.4f}",
            ("too few targets to tell" if result.hits is None else f"± {result.hits_error:.4f}")
            + f"; at most {result.hits_bound:.4f} is possible",
        ),
        ("lower bound on mu", _number(result.lower_bound_mu), "between both, from all guesses"),
        (
            "targets",
            f"{result.coins.size:,}",
            f"{2 * result.shadows} trainings of the attacker's own",
        ),
        ("existence", "", result.existence),
    ]


def draw(result: Result) -> Any:
    """Return the measured trade-off of error rates beside the claimed curve.

    Twice: as it is, and on axes on which Gaussian curves are straight and small rates can be seen.
    """
    curve = _curve(result)
    drawing = canvas(11.0, 5.5)
    for panel, is_stretched in zip(drawing.subplots(1, 2), (False, True), strict=True):
        _draw_curve(panel, curve)
        ends = (0.001, 0.999) if is_stretched else (0.0, 1.0)
        if is_stretched:
            panel.set_xscale("function", functions=(_deviate, ndtr))
            panel.set_yscale("function", functions=(_deviate, ndtr))
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_ticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        else:
            panel.legend()
        panel.set(xlabel="rate of false alarms", ylabel="rate of misses", xlim=ends, ylim=ends)
        panel.grid(alpha=0.3)
    drawing.suptitle(
        "Violated if the point lies in the shaded area with both of its bounds"
        if curve.point
        else "Measured in one run: the curve itself is uncertain; the verdict counts guesses"
    )
    return drawing


_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def _deviate(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(ndtri(np.clip(rates, 1e-9, 1 - 1e-9)))


def _draw_curve(panel: Any, curve: _Curve) -> None:
    rates = ndtr(np.linspace(-4, 4, 401))
    panel.plot(rates, 1 - rates, color="#999999", linestyle=":", label="guessing")
    claimed = ndtr(-ndtri(rates) - curve.mu)
    panel.plot(rates, claimed, color=COLOURS[0], label=f"claimed: μ = {curve.mu:.4g}")
    panel.fill_between(rates, claimed, color=COLOURS[0], alpha=0.1)
    panel.step(*_measured(curve), where="post", color=COLOURS[1], label=curve.words)
    if curve.point:
        alarms, misses, alarms_most, misses_most = curve.point
        panel.errorbar(
            [alarms],
            [misses],
            xerr=[[0], [alarms_most - alarms]],
            yerr=[[0], [misses_most - misses]],
            color=COLOURS[6],
            marker="o",
            capsize=3,
            label="at the threshold, with upper bounds",
        )


def _curve(result: Result) -> _Curve:
    if isinstance(result, TwoWorlds):
        runs, (alarms, misses) = result.plan.runs, result.errors
        point = alarms / runs, misses / runs, *result.rates
        seen = "transcript" if result.plan.view is View.TRANSCRIPT else "release"
        words = f"attacker who sees the {seen}"
        return _Curve(*result.scores, result.claim.mu, words, point)
    mu = result.mu if isinstance(result, Attack) else result.claim.mu
    words = "attacker who sees the " + ("release" if isinstance(result, Attack) else "transcript")
    return _Curve(result.scores[~result.coins], result.scores[result.coins], mu, words)


def _measured(curve: _Curve) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the rates of false alarms and misses at every threshold."""
    thresholds = np.unique(np.concatenate([curve.first, curve.second, [-math.inf]]))[::-1]
    first, second = np.sort(curve.first), np.sort(curve.second)
    alarms = 1 - np.searchsorted(first, thresholds, side="right") / max(1, first.size)
    misses = np.searchsorted(second, thresholds, side="right") / max(1, second.size)
    return alarms, misses


_READING = """<h2>How to read it</h2>
<p>An attacker knows everything but in which of two worlds it was: they differ by the value of one
rating, by one rating more or less, or by one person, whatever the claim hides. A false alarm
takes the first for the second, a miss the second for the first. The claim is a curve: at every
rate of false alarms, the fewest misses that any attacker can have. Its parameter is μ; μ = 0 is
guessing. The lower bound on μ is what the attacker's record proves, with the stated confidence
and without assumptions; only if it exceeds the claimed μ, or if a check of single runs fails, is
the claim violated. The bound on ε from so few runs is far below the truth, even then.</p>
<p>No evidence does not mean private: another pair of data sets, another attacker or more runs may
show more, and an audit sees nothing of what happens outside training.</p>"""


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
        picture(svg, "trade-off of false alarms and misses"),
        table(("", "", ""), rows(result)),
    ]
    if checks := check_rows(result):
        parts += ["<h2>Checks of single runs</h2>", table(("check", "", ""), checks)]
    parts += [
        _READING,
        f"<h2>What was attacked</h2><p>Solver {solver.name} of Taciturn {__version__}, with:</p>",
        table(("setting", "value"), options),
    ]
    return page(f"Audit of {solver.name}: {facts['audit']}", parts)


def _number(value: float) -> str:
    return f"{value:.4f}"
