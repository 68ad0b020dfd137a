"""Reports of a comparison: table, plot, JSON and a self-contained page. All owner-only."""

from html import escape
from pathlib import Path
from typing import Any

from taciturn._internal.drawing import COLOURS, canvas, write_drawn
from taciturn._internal.html import page, picture, table
from taciturn.evaluate.against import PairedDifference, Pairing
from taciturn.evaluate.bands import BandMetric
from taciturn.evaluate.compare import Comparison, Summary

OWNER = (
    "These errors are exact functions of private ratings: owner-only. No guarantee covers using "
    "them to choose what to publish."
)
_HEAD = ("solver", "unit", "ε", "status", "RMSE", "difference", "MAE", "NDCG@10", "recall@20")

BANDS_SHOWN = {
    "By user activity: five bands, from the fewest training ratings to the most": {
        "rmse_by_activity": "RMSE",
        "ndcg_by_activity": "NDCG@10",
        "recall_by_activity": "recall@20",
    },
    "By item popularity: five bands, from the fewest training ratings to the most": {
        "rmse_by_popularity": "RMSE",
        "recall_by_popularity": "recall@20",
    },
}
"""Titles of the tables by band, and the metrics in each with their headings."""


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
    """All tables as text: overall, by band, and differences from an earlier run."""
    return "\n\n".join(
        [_aligned(rows(comparison)), *_band_texts(comparison), *_paired_texts(comparison)]
    )


def overview(comparison: Comparison) -> str:
    """Tables as text without bands: overall, and differences from an earlier run."""
    return "\n\n".join([_aligned(rows(comparison)), *_paired_texts(comparison)])


def _band_texts(comparison: Comparison) -> list[str]:
    """Metrics by band, as titled tables of text."""
    summaries, parts = comparison.summaries(), []
    for title, metrics in BANDS_SHOWN.items():
        head = (*_HEAD[:3], *metrics.values())
        body = [
            (*_named(each), *(_band_line(each.bands[name]) for name in metrics))
            for each in summaries
        ]
        parts.append(f"{title}\n{_aligned([head, *body])}")
    return parts


def _paired_texts(comparison: Comparison) -> list[str]:
    """Differences from an earlier comparison, as a titled table of text; none without one."""
    pairing = comparison.pairing()
    if pairing is None:
        return []
    title = "RMSE difference from the earlier run on the same splits"
    return [f"{title}\n{_aligned(_paired_rows(pairing))}"]


def as_html(comparison: Comparison) -> str:
    """Tables with their title and note, for a notebook."""
    head, *body = rows(comparison)
    title = escape(f"Comparison on {comparison.source}")
    parts = [f"<strong>{title}</strong>", table(head, body), *_paired_parts(comparison)]
    return f"<div>{''.join(parts)}<p>{escape(OWNER)}</p></div>"


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[place]) for row in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in lines
    )


def _band_line(values: BandMetric) -> str:
    """Metric of all bands in one cell of a text table."""
    return " ".join(f"{cell:>5}" for cell in _band_cells(values, digits=3))


def _band_cells(values: BandMetric, digits: int) -> list[str]:
    """Metric of each band as text."""
    return ["–" if each is None else f"{each:.{digits}f}" for each in values]


def _paired_rows(pairing: Pairing) -> list[tuple[str, ...]]:
    """Rows of the table of paired differences, starting with the header."""
    return [
        (*_HEAD[:3], "pairs", "difference"),
        *(
            (*_named(each), str(each.pairs), _with_error(each.difference, each.error, sign="+"))
            for each in pairing.differences
        ),
    ]


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


def _named(summary: Summary | PairedDifference) -> tuple[str, str, str]:
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
    for colour, (name, unit) in zip(_cycle()[::-1], comparison.plan.public_kinds, strict=False):
        means = [s.means["rmse"] for s in summaries if (s.solver, s.unit) == (name, unit)]
        label = "public ratings alone" + (f", unit {unit}" if has_units else "")
        panel.axhline(means[0], color=colour, linestyle="-.", label=label)
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
        *_paired_parts(comparison),
        *_band_parts(comparison),
    ]
    return page(f"Comparison on {comparison.source}", parts)


def _paired_parts(comparison: Comparison) -> list[str]:
    """Differences from an earlier comparison, as HTML; none without one."""
    pairing = comparison.pairing()
    if pairing is None:
        return []
    head, *body = _paired_rows(pairing)
    return [
        "<h2>Difference from the earlier run</h2>",
        table(head, body),
        "<p class='note'>Mean RMSE difference on the same splits, this run minus the earlier one "
        f"on {escape(pairing.source)}, with its standard error.</p>",
        *(f"<p class='note'>Note: {escape(note)}.</p>" for note in pairing.notes),
    ]


def _band_parts(comparison: Comparison) -> list[str]:
    """Metrics by band, as HTML."""
    summaries, parts = comparison.summaries(), []
    for title, metrics in BANDS_SHOWN.items():
        parts.append(f"<h2>{title}</h2>")
        for name, heading in metrics.items():
            body = [(*_named(each), *_band_cells(each.bands[name], digits=4)) for each in summaries]
            head = (*_HEAD[:3], "fewest", "2", "3", "4", "most")
            parts += [f"<h3>{heading}</h3>", table(head, body)]
    parts.append(
        "<p class='note'>Each band has about equally many training ratings. NDCG and recall by "
        "user activity are means over users. Recall by item popularity is the fraction of the "
        "relevant held-out ratings of the band whose item is among the first 20.</p>"
    )
    return parts
