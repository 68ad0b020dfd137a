"""Plot of a comparison: RMSE and NDCG@10 against ε. Owner-only."""

from dataclasses import dataclass
from typing import Any

from taciturn._internal.drawing import COLOURS, canvas
from taciturn.accounting.units import Unit
from taciturn.evaluate.compare import Comparison, Summary
from taciturn.evaluate.plan import EXACT_POPULARITY, POPULARITY, PUBLIC, Plan

_PANELS = {
    "rmse": "RMSE on held-out ratings (lower is better)",
    "ndcg": "NDCG@10 of lists (higher is better)",
}
"""Metric of each panel, with its label."""

_GREYS = ("#333333", "#777777", "#aaaaaa")
"""Colours of popularity under each unit, and without noise."""


@dataclass(frozen=True, kw_only=True)
class _Line:
    """One solver under one unit: its summaries in the order of ε, and its style."""

    summaries: list[Summary]
    colour: str
    style: str
    label: str

    def draw(self, panel: Any, metric: str) -> None:
        """Draw a metric; nothing where it is unknown."""
        means = [each.means[metric] for each in self.summaries]
        errors = [each.errors[metric] for each in self.summaries]
        if None in means:
            return
        style = {"color": self.colour, "linestyle": self.style, "label": self.label}
        if not self.summaries[0].epsilon:
            panel.axhline(means[0], **style)
            return
        panel.errorbar(
            [each.epsilon for each in self.summaries],
            means,
            yerr=errors if None not in errors else None,
            marker="o",
            capsize=3,
            **style,
        )


def draw_comparison(comparison: Comparison) -> Any:
    """RMSE and NDCG@10 against ε, side by side. Solvers that only rank are in the second alone.

    Lines of solvers that are not proven are dashed. What does not depend on ε is a horizontal line.
    """
    plan, lines = comparison.plan, _lines(comparison)
    drawing = canvas(13.0, 5.0 + 0.25 * -(-len(lines) // 2))
    ticks = sorted(plan.epsilons)
    labels: dict[str, Any] = {}
    for panel, (metric, name) in zip(
        drawing.subplots(1, len(_PANELS)), _PANELS.items(), strict=True
    ):
        for line in lines:
            line.draw(panel, metric)
        panel.set_xscale("log")
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set(xlabel=f"overall ε at δ = {plan.delta:g}, exact", ylabel=name)
        panel.grid(alpha=0.3)
        handles, found = panel.get_legend_handles_labels()
        labels |= dict(zip(found, handles, strict=True))
    drawing.suptitle(f"{comparison.source}: {plan.seeds} splits")
    shown = [line.label for line in lines if line.label in labels]
    drawing.legend([labels[each] for each in shown], shown, loc="outside lower center", ncols=2)
    return drawing


def _lines(comparison: Comparison) -> list[_Line]:
    """Lines of all solvers and units, in the order of the plan."""
    plan, colours, greys = comparison.plan, iter(list(COLOURS) * 3), iter(list(_GREYS) * 2)
    lines = []
    for name, unit in [*plan.kinds, *plan.public_kinds, *plan.popularity_kinds]:
        of = [s for s in comparison.summaries() if (s.solver, s.unit) == (name, unit)]
        is_popularity = name in (POPULARITY, EXACT_POPULARITY)
        lines.append(
            _Line(
                summaries=of,
                colour=next(greys if is_popularity else colours),
                style=_style(name, of[0].status),
                label=_label(plan, name, unit, of[0].status),
            )
        )
    return lines


def _style(name: str, status: str) -> str:
    if name == PUBLIC:
        return "-."
    return {"proven": "-", "none": ":"}.get(status, "--")


def _label(plan: Plan, name: str, unit: Unit | None, status: str) -> str:
    """Solver in words, with what its unit protects if there are several units."""
    if name == PUBLIC:
        label = "public ratings alone"
    elif unit is None:
        return f"{name} (not private)"
    else:
        label = name if status == "proven" else f"{name} ({status})"
    if len(plan.units_shown) < 2:
        return label
    protects = "" if name == PUBLIC else f": protects {unit.facts.protects}" if unit else ""
    return f"{label}, unit {unit}{protects}"
