"""Text summaries of reproduced figures, computed from their points."""

from taciturn.reproduction.figures import Point
from taciturn.reproduction.published import NON_PRIVATE, Axis, Quantity
from taciturn.reproduction.reproduce import Reproduced

GUESSES = (
    "As run, ratings are centred by each item's exact mean before training. The paper does not "
    "mention this, but without centring no error starts at 1.0 as its curves do. The means have no "
    "noise.",
    "As run, τ is the largest rating (5, or 10 for anime), not the width of the scale that the "
    "theorem requires. This adds more noise than the theorem requires.",
    "λ = 0, C = 1, k = 20, step size 5e-4, δ_i = 0.01 and δ = 1e-5 where a figure does not vary "
    "them.",
    "The plotted errors are errors on the training ratings before each step.",
    "Where the paper plots k = 44, its errors are those of k = 48, so k = 48 is run.",
    "The number of iterations of each point is computed from the overall ε in the paper's plot. "
    "Comparing ε therefore only checks the formula and the rounding. In the sweeps the number is a "
    "mean over runs, and is rounded. Lines without noise have no ε: in the sweeps they run as long "
    "as the line with the least noise.",
    "The paper's initial profiles are unknown. The iteration at which the error starts to fall "
    "depends on them. For figures 1 and 4, seeds were chosen from about thirty so that the error "
    "falls when the paper's does.",
    "The paper does not state its stopping rule. No rule tried comes closer to its iteration "
    "counts than this one: stop when the minimum of the last 15 errors is less than 5e-5 below the "
    "minimum of all errors before them.",
    "Two films of the Netflix slice were not available. If only a sample of the anime set is "
    "available, its errors are not compared with the paper's, only the trends.",
)


def reading(result: Reproduced) -> str:
    """Summary of a figure in a few sentences."""
    axis = result.figure.axis
    sentences = []
    if _line(result, Quantity.MS):
        sentences.append(_times(result))
    elif _line(result, Quantity.RMSE):
        sentences.append(_curves(result) if axis is Axis.ITERATIONS else _sweep(result))
    if _line(result, Quantity.EPSILON_PAPER):
        sentences.append(_privacy(result))
    if result.obstacle:
        sentences.append(f"Compare only trends, not values: {result.obstacle}.")
    return " ".join(sentences)


def _curves(result: Reproduced) -> str:
    train, test = (_ends(result, each) for each in (Quantity.RMSE, Quantity.RMSE_TEST))
    best = [
        min(line, key=lambda point: point.y) for line in _lines(result, Quantity.RMSE_TEST).values()
    ]
    words = (
        f"The runs end at training errors of {min(train):.3f} to {max(train):.3f} and held-out "
        f"errors of {min(test):.3f} to {max(test):.3f}. The lowest held-out errors, "
        f"{_span(best, 3)}, were reached after {min(p.x for p in best):.0f} to "
        f"{max(p.x for p in best):.0f} iterations."
    )
    if any(end > point.y + 0.001 for end, point in zip(test, best, strict=True)):
        words += (
            " Beyond that point the training error falls by memorising ratings, and every further "
            "iteration costs privacy."
        )
    return words


def _sweep(result: Reproduced) -> str:
    train, test = (_line(result, each) for each in (Quantity.RMSE, Quantity.RMSE_TEST))
    names = {
        Axis.EPSILON_I: "ε_i",
        Axis.FACTORS: "k",
        Axis.STEP_SIZE: "step size",
    }
    first, last = train[0].x, train[-1].x
    noisiest = _noisiest(result)
    start, end = (_at(result, Quantity.RMSE, noisiest, x) for x in (first, last))
    held = [_at(result, Quantity.RMSE_TEST, noisiest, x) for x in (first, last)]
    return (
        f"From {names[result.figure.axis]} = {first:g} to {last:g} the training error changes from "
        f"{start:.3f} to {end:.3f}{_of(noisiest)}, and the held-out error from {held[0]:.3f} to "
        f"{held[1]:.3f}. Over all lines, held-out errors are {_span(test, 3)} and training errors "
        f"{_span(train, 3)}."
    ) + (
        " The paper's figure measures how well ratings are memorised, not how well they are "
        "predicted."
        if max(p.y for p in train) < min(p.y for p in test)
        else ""
    )


def _privacy(result: Reproduced) -> str:
    paper, exact = (
        _line(result, each) for each in (Quantity.EPSILON_PAPER, Quantity.EPSILON_EXACT)
    )
    gains = [1 - b.y / a.y for a, b in zip(paper, exact, strict=True)]
    return (
        f"The overall ε is {_span(paper, 1)} by the paper's formula. Exact accounting of the same "
        f"noise gives {_span(exact, 1)}, {min(gains):.0%} to {max(gains):.0%} less. Neither is "
        "proven for the paper's algorithm, whose steps can have a higher sensitivity than both "
        "assume."
    )


def _times(result: Reproduced) -> str:
    lines = _lines(result, Quantity.MS)
    parts = []
    for series, points in lines.items():
        at = min(points, key=lambda point: abs(point.x - 20))
        part = f"{at.y:.1f} ms at k = {at.x:g}"
        if at.paper:
            part += f" (the paper's P100: {at.paper:.1f})"
        parts.append(f"{part}{', without noise' if series == NON_PRIVATE else ', with noise'}")
    return (
        f"On the CPU of this machine one iteration takes {'; '.join(parts)}. From k = "
        f"{points[0].x:g} to {points[-1].x:g} it takes {_span(_line(result, Quantity.MS), 1)} ms."
    )


def _lines(result: Reproduced, quantity: Quantity) -> dict[str, list[Point]]:
    lines: dict[str, list[Point]] = {}
    for point in result.points:
        if point.quantity is quantity:
            lines.setdefault(point.series, []).append(point)
    return lines


def _line(result: Reproduced, quantity: Quantity) -> list[Point]:
    """All points of a quantity, sorted by x."""
    points = [point for point in result.points if point.quantity is quantity]
    return sorted(points, key=lambda point: point.x)


def _ends(result: Reproduced, quantity: Quantity) -> list[float]:
    return [line[-1].y for line in _lines(result, quantity).values()]


def _span(points: list[Point], digits: int) -> str:
    values = [point.y for point in points]
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _noisiest(result: Reproduced) -> str:
    """Line with the most noise, which is the first in the legend."""
    return next(iter(_lines(result, Quantity.RMSE)))


def _at(result: Reproduced, quantity: Quantity, series: str, x: float) -> float:
    (found,) = (p.y for p in _lines(result, quantity)[series] if p.x == x)
    return found


def _of(series: str) -> str:
    return f" at {series.replace('eps_i=', 'ε_i = ')}" if series.startswith("eps_i") else ""
