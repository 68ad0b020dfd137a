"""Plots of reproduced figures with the paper's points. Needs the extra `plots`."""

from collections.abc import Sequence
from typing import Any

from taciturn._internal.drawing import COLOURS, canvas, saved
from taciturn.reproduction.figures import Point
from taciturn.reproduction.published import NON_PRIVATE, Axis, Figure, Quantity

_PANELS = (
    ((Quantity.RMSE,), "RMSE on the training ratings"),
    ((Quantity.RMSE_TEST,), "RMSE on held-out ratings (90/10)"),
    ((Quantity.EPSILON_PAPER, Quantity.EPSILON_EXACT), "overall ε at δ = 1e-5"),
    ((Quantity.MS,), "milliseconds per iteration"),
)
_AXES = {
    Axis.ITERATIONS: "iterations",
    Axis.EPSILON_I: "ε_i per iteration",
    Axis.FACTORS: "number of factors, k (the paper's n)",
    Axis.STEP_SIZE: "step size (the paper's μ)",
}


_CIRCLE = {"linestyle": "none", "marker": "o", "markerfacecolor": "none"}


def draw_figure(figure: Figure, points: Sequence[Point], subtitle: str = "") -> dict[str, bytes]:
    """Figure as PNG and SVG, by file extension."""
    shown = [
        (group, title)
        for group, title in _PANELS
        if any(point.quantity in group for point in points)
    ]
    drawing = canvas(max(6.5, 5.2 * len(shown)), 5.0)
    panels = drawing.subplots(1, len(shown), squeeze=False)[0]
    names = list(dict.fromkeys(curve.series for curve in figure.curves))
    colours = dict(zip(names, COLOURS, strict=False))
    handles: dict[str, Any] = {}
    for panel, (group, title) in zip(panels, shown, strict=True):
        for quantity in group:
            for name in names:
                _draw_line(panel, figure, points, name, quantity, colours[name])
        panel.set(title=title, xlabel=_AXES[figure.axis])
        panel.grid(alpha=0.3)
        if Quantity.MS in group or Quantity.EPSILON_PAPER in group:
            panel.set_yscale("log")
        found, labels = panel.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    (circle,) = panels[0].plot([], [], **_CIRCLE, color="#777777", markersize=7)
    handles["the paper's points"] = circle
    drawing.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=5, fontsize=8
    )
    errors = [
        panel
        for panel, (group, _) in zip(panels, shown, strict=True)
        if group[0] in (Quantity.RMSE, Quantity.RMSE_TEST)
    ]
    if len(errors) == 2:  # on one scale, to show the gap between them
        errors[0].sharey(errors[1])
        errors[0].autoscale_view()
    title = f"Figure {figure.number}: {figure.title}"
    drawing.suptitle(f"{title}\n({subtitle})" if subtitle else title, fontsize=10)
    return {ending: saved(drawing, ending) for ending in ("png", "svg")}


def _draw_line(
    panel: Any,
    figure: Figure,
    points: Sequence[Point],
    series: str,
    quantity: Quantity,
    colour: str,
) -> None:
    """Draw one line and the paper's points for it."""
    line = [point for point in points if (point.series, point.quantity) == (series, quantity)]
    if not line:
        return
    is_curve = figure.axis is Axis.ITERATIONS
    panel.errorbar(
        [point.x for point in line],
        [point.y for point in line],
        yerr=[point.standard_deviation for point in line] if line[0].standard_deviation else None,
        color=colour,
        linestyle=":" if quantity is Quantity.EPSILON_EXACT else "-",
        linewidth=1.4,
        marker=None if is_curve else ".",
        label=_label(series, quantity),
    )
    reached = max(point.x for point in line)
    shown = [
        (x, y)
        for curve in figure.curves
        if (curve.series, curve.quantity) == (series, quantity)
        for x, y in curve.points
        if x <= reached
    ]
    panel.plot(
        [x for x, _ in shown],
        [y for _, y in shown],
        **_CIRCLE,
        color=colour,
        markersize=4 if is_curve else 7,
    )


def _label(series: str, quantity: Quantity) -> str:
    if series in ("rmse", "overall_epsilon"):
        names = {
            Quantity.EPSILON_PAPER: "by the paper's formula",
            Quantity.EPSILON_EXACT: "exact",
        }
        return names.get(quantity, "reproduced")
    name = "without noise" if series == NON_PRIVATE else series.replace("eps_i=", "ε_i = ")
    return f"{name}, exact" if quantity is Quantity.EPSILON_EXACT else name
