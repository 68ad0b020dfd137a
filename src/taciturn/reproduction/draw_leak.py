"""Plots and JSON of `taciturn paper leak`. Plots need the extra `plots`."""

from pathlib import Path
from typing import Any

import numpy as np

from taciturn._internal import strict_json
from taciturn._internal.drawing import canvas, saved
from taciturn._internal.files import prepare_folder, write_file
from taciturn.audit.counterexample import counterexample
from taciturn.reproduction.leak import ItemLeak, Leak
from taciturn.reproduction.published import DELTA

_ORIGINAL, _CHANGED, _CLAIM = "#0072B2", "#D55E00", "#000000"


def write_leak(folder: Path, leak: Leak) -> None:
    """Write leak.png, leak.svg and leak.json, replacing existing files."""
    prepare_folder(folder)
    for ending, content in draw_leak(leak).items():
        write_file(folder / f"leak.{ending}", content, replace=True)
    write_file(folder / "leak.json", strict_json.dumps(leak.to_dict()).encode(), replace=True)


def draw_leak(leak: Leak) -> dict[str, bytes]:
    """Plots as PNG and SVG: the counterexample, then privacy losses against iterations."""
    panels = len(leak.items) + 1
    drawing = canvas(4.6 * panels, 4.2)
    first, *others = drawing.subplots(1, panels, squeeze=False)[0]
    _draw_counterexample(first, leak)
    for panel, item in zip(others, leak.items, strict=True):
        _draw_losses(panel, item, leak.claimed_epsilon)
    return {ending: saved(drawing, ending) for ending in ("png", "svg")}


def _draw_counterexample(panel: Any, leak: Leak) -> None:
    claims = np.geomspace(0.1, 20, 60)
    panel.plot(claims, [counterexample(each, DELTA).true_epsilon for each in claims], label="true")
    panel.plot(claims, claims, color=_CLAIM, linestyle="--", label="claimed")
    for case in leak.counterexamples:
        panel.plot([case.claimed_epsilon], [case.true_epsilon], "o", color=_CHANGED)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="claimed ε (δ = 1e-5)",
        ylabel="ε",
        title="Four users, final profiles",
    )
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)


def _draw_losses(panel: Any, item: ItemLeak, claim: float) -> None:
    for runs, colour, label in (
        (item.original, _ORIGINAL, "original dataset"),
        (item.changed, _CHANGED, "neighbouring dataset"),
    ):
        for number, run in enumerate(runs):
            steps = np.arange(1, run.loss.size + 1)
            panel.plot(
                steps,
                run.loss,
                color=colour,
                alpha=0.35,
                linewidth=0.7,
                label=label if number == 0 else None,
            )
    panel.axhline(claim, color=_CLAIM, linestyle="--", label=f"claimed ε = {claim:.2f}")
    losses = [run.loss for run in (*item.original, *item.changed)]
    least, largest = min(map(np.min, losses)), max(map(np.max, losses))
    if largest > 10 * claim:
        panel.set_yscale("symlog", linthresh=2 * claim)
        panel.set_ylim(1.5 * min(least, -1.0), 2 * largest)
    panel.set(
        xlabel="iterations",
        ylabel="privacy loss",
        title=f"Item {item.item_id}: {item.raters:,} raters",
    )
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7, loc="upper left")
