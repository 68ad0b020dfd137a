"""Reports of a comparison: table, plot, JSON and a self-contained page. All owner-only."""

from html import escape
from pathlib import Path
from typing import Any

from taciturn._internal.drawing import COLOURS, canvas, write_drawn
from taciturn._internal.html import page, picture, table
from taciturn.evaluate.compare import Comparison, Summary

OWNER = (
    "These errors are exact functions of private ratings: owner-only. No guarantee covers using "
    "them to choose what to publish."
)
_HEAD = ("solver", "unit", "ε", "status", "RMSE", "difference", "MAE", "NDCG@10", "recall@20")


def write_comparison(folder: Path, comparison: Comparison) -> list[Path]:
    """Write compare.json, .png, .svg and .html, replacing existing files."""
    return write_drawn(
        folder / "compare",
        comparison.to_dict(),
        draw_comparison(comparison),
        lambda svg: _page(comparison, svg),
        is_private=True,
    )


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Rows of the table as text, starting with the header."""
    return [_HEAD, *(_row(summary) for summary in comparison.summaries())]


def as_text(comparison: Comparison) -> str:
    """Table as aligned lines of text."""
    lines = rows(comparison)
    widths = [max(len(row[place]) for row in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in lines
    )


def as_html(comparison: Comparison) -> str:
    """Table with its title and note, for a notebook."""
    head, *body = rows(comparison)
    title = escape(f"Comparison on {comparison.source}")
    return f"<div><strong>{title}</strong>{table(head, body)}<p>{escape(OWNER)}</p></div>"


def _row(summary: Summary) -> tuple[str, ...]:
    means, errors = summary.means, summary.errors
    difference = "" if summary.difference is None else _with_error(*summary.difference, sign="+")
    return (
        *_named(summary),
        summary.status,
        _with_error(means["rmse"], errors["rmse"]),
        difference,
        _with_error(means["mae"], errors["mae"]),
        _with_error(means["ndcg"], errors["ndcg"]),
        _with_error(means["recall"], errors["recall"]),
    )


def _named(summary: Summary) -> tuple[str, str, str]:
    """Solver, unit and ε as text."""
    epsilon = "–" if summary.epsilon is None else f"{summary.epsilon:g}"
    return summary.solver, summary.unit or "–", epsilon


def _with_error(mean: float | None, error: float | None, sign: str = "") -> str:
    if mean is None:
        return ""
    return f"{mean:{sign}.4f}" + ("" if error is None else f" ± {error:.4f}")


def draw_comparison(comparison: Comparison) -> Any:
    """Plot of RMSE against ε. Lines of solvers that are not proven are dashed."""
    has_units = len(comparison.plan.units_run) > 1
    drawing = canvas(7.5, 5.0 + 0.25 * has_units * len(comparison.plan.kinds))
    panel = drawing.add_subplot()
    summaries = comparison.summaries()
    for colour, (name, unit) in zip(_cycle(), comparison.plan.kinds, strict=False):
        line = [each for each in summaries if (each.solver, each.unit) == (name, unit)]
        means = [summary.means["rmse"] for summary in line]
        if line[0].epsilon is None:
            panel.axhline(means[0], color=colour, linestyle=":", label=f"{name} (not private)")
            continue
        label = name if line[0].status == "proven" else f"{name} ({line[0].status})"
        if unit and has_units:
            label += f", unit {unit}: protects {unit.facts.protects}"
        errors = [summary.errors["rmse"] for summary in line]
        panel.errorbar(
            [summary.epsilon for summary in line],
            means,
            yerr=errors if None not in errors else None,
            color=colour,
            linestyle="-" if line[0].status == "proven" else "--",
            marker="o",
            capsize=3,
            label=label,
        )
    ticks = sorted(comparison.plan.epsilons)
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set(
        xlabel=f"overall ε at δ = {comparison.plan.delta:g}, exact",
        ylabel="RMSE on held-out ratings",
        title=f"{comparison.source}: {comparison.plan.seeds} splits",
    )
    panel.grid(alpha=0.3)
    if has_units:
        drawing.legend(loc="outside lower center")  # too wide to fit inside the plot
    else:
        panel.legend()
    return drawing


def _cycle() -> list[str]:
    return list(COLOURS) * 3


def _page(comparison: Comparison, svg: bytes) -> bytes:
    head, *body = rows(comparison)
    groups = [
        (
            *_named(summary),
            *("" if error is None else f"{error:.4f}" for error in summary.by_popularity),
        )
        for summary in comparison.summaries()
    ]
    plan = comparison.plan
    parts = [
        f"<p class='note'>{OWNER}</p>",
        picture(svg, "held-out error against ε"),
        table(head, body),
        f"<p class='note'>Means over {plan.seeds} random splits, {plan.holdout:g} of the ratings "
        "held out, with standard errors. Differences are from the first solver at the same ε on "
        "the same splits. Rankings are over all items without a training rating by the user; "
        "held-out ratings in the top quarter of the scale are relevant. Status claimed is not a "
        "guarantee."
        "</p>",
        table(("unit", "protects"), [(unit, unit.facts.protects) for unit in plan.units_run]),
        "<h2>RMSE by popularity</h2>",
        table(("solver", "unit", "ε", "least popular", "2", "3", "4", "most popular"), groups),
        "<p class='note'>Five groups of items with about equally many training ratings.</p>",
    ]
    return page(f"Comparison on {comparison.source}", parts)
