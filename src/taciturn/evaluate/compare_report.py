"""Reports of a comparison: table, plot, JSON and a self-contained page. All owner-only."""

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from taciturn._internal.drawing import write_drawn
from taciturn._internal.html import page, picture, table
from taciturn.evaluate.against import PairedDifference, Pairing
from taciturn.evaluate.bands import BandMetric
from taciturn.evaluate.compare import Comparison, Summary
from taciturn.evaluate.compare_plot import draw_comparison
from taciturn.evaluate.plan import predicts_ratings

OWNER = (
    "These errors are exact functions of private ratings: owner-only. No guarantee covers using "
    "them to choose what to publish."
)
_HEAD = ("solver", "unit", "ε", "status")
_ERRORS = {"rmse": "RMSE", "difference": "difference", "mae": "MAE"}
_LISTS = {
    "ndcg": "NDCG@10",
    "recall": "recall@20",
    "item_coverage": "item coverage@10",
    "novelty": "novelty@10",
}
"""Headings of the metrics of predicted ratings, and of those of lists."""

LISTS_TITLE = "Lists, of all items that a user did not rate in training"

BANDS_SHOWN = {
    "RMSE by user activity: five bands, from the fewest training ratings to the most": {
        "rmse_by_activity": "RMSE",
    },
    "Lists by user activity": {
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
    return _rows(comparison.summaries(), _ERRORS | _LISTS)


def as_text(comparison: Comparison) -> str:
    """All tables as text: overall, by band, and differences from an earlier run."""
    return "\n\n".join(
        [*_overall(comparison), *_band_texts(comparison), *_paired_texts(comparison)]
    )


def overview(comparison: Comparison) -> str:
    """Tables as text without bands: overall, and differences from an earlier run."""
    return "\n\n".join([*_overall(comparison), *_paired_texts(comparison)])


def _overall(comparison: Comparison) -> list[str]:
    """Tables of predicted ratings and of lists: one would be too wide for a terminal."""
    summaries = comparison.summaries()
    predicting = [each for each in summaries if predicts_ratings(each.solver)]
    lists = f"{LISTS_TITLE}\n{_aligned(_rows(summaries, _LISTS))}"
    return [*([_aligned(_rows(predicting, _ERRORS))] if predicting else []), lists]


def _band_texts(comparison: Comparison) -> list[str]:
    """Metrics by band, as titled tables of text."""
    parts = []
    for title, metrics in BANDS_SHOWN.items():
        head = (*_HEAD[:3], *metrics.values())
        body = [
            (*_named(each), *(_band_line(each.bands[name]) for name in metrics))
            for each in _with_bands(comparison, metrics)
        ]
        if body:
            parts.append(f"{title}\n{_aligned([head, *body])}")
    return parts


def _with_bands(comparison: Comparison, names: Iterable[str]) -> list[Summary]:
    """Summaries that have one of these metrics: a solver that only ranks has no RMSE."""
    has_lists = any(not name.startswith("rmse") for name in names)
    return [each for each in comparison.summaries() if has_lists or predicts_ratings(each.solver)]


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


def _rows(summaries: list[Summary], metrics: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Table of some metrics, given with their headings."""
    head = (*_HEAD, *metrics.values())
    return [
        head,
        *((*_named(s), s.status, *(_cell(s, name) for name in metrics)) for s in summaries),
    ]


def _cell(summary: Summary, name: str) -> str:
    """Metric with its standard error, or the difference from the baseline."""
    if name == "difference":
        found = summary.difference
        return "" if found is None else _with_error(*found, sign="+")
    return _with_error(summary.means[name], summary.errors[name])


def _named(summary: Summary | PairedDifference) -> tuple[str, str, str]:
    """Solver, unit and ε as text."""
    epsilon = "–" if summary.epsilon is None else f"{summary.epsilon:g}"
    return summary.solver, summary.unit or "–", epsilon


def _with_error(mean: float | None, error: float | None, sign: str = "") -> str:
    if mean is None:
        return "–"
    return f"{mean:{sign}.4f}" + ("" if error is None else f" ± {error:.4f}")


def _page(comparison: Comparison, svg: bytes) -> bytes:
    head, *body = rows(comparison)
    plan = comparison.plan
    parts = [
        f"<p class='note'>{OWNER}</p>",
        picture(svg, "held-out error and quality of lists against ε"),
        table(head, body),
        f"<p class='note'>Means over {plan.seeds} random splits, {plan.holdout:g} of the ratings "
        "held out, with standard errors. Differences are from the first solver that predicts "
        "ratings, at the same ε on the same splits. Rankings are over all items without a training "
        "rating by the user; held-out ratings in the top quarter of the scale are relevant. Item "
        "coverage is the fraction of all items that are among the first 10 of a user. Novelty is "
        "the mean over these lists of −log₂ of the fraction of users who rated the item. The rows "
        "of popularity show everybody the same list. Status claimed is not a guarantee."
        "</p>",
        table(("unit", "protects"), [(unit, unit.facts.protects) for unit in plan.units_shown]),
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
    parts = []
    for title, metrics in BANDS_SHOWN.items():
        tables = {name: shown for name in metrics if (shown := _with_bands(comparison, [name]))}
        parts += [f"<h2>{title}</h2>"] if tables else []
        for name, shown in tables.items():
            body = [(*_named(each), *_band_cells(each.bands[name], digits=4)) for each in shown]
            head = (*_HEAD[:3], "fewest", "2", "3", "4", "most")
            parts += [f"<h3>{metrics[name]}</h3>", table(head, body)]
    parts.append(
        "<p class='note'>Each band has about equally many training ratings. NDCG and recall by "
        "user activity are means over users. Recall by item popularity is the fraction of the "
        "relevant held-out ratings of the band whose item is among the first 20.</p>"
    )
    return parts
