"""Plots of privacy costs. Needs the extra `plots`; reads public numbers only."""

import io
from pathlib import Path

from taciturn._internal.files import write_file
from taciturn._internal.optional import require
from taciturn.accounting.accounts import ACCOUNTANTS, account
from taciturn.errors import InvalidParameter

FORMATS = (".png", ".svg", ".pdf")

_POINTS = 60


def plot_accountants(path: str | Path, ratios: list[tuple[float, int]], delta: float) -> None:
    """Plot ε against the number of releases so far, for every accountant, and save it to a file.

    `ratios` are (μ, count) pairs in order of release. The file name's suffix selects the format.
    """
    path = Path(path)
    figure_module = require("matplotlib.figure", extra="plots")
    figure = figure_module.Figure(figsize=(7, 4.5), layout="constrained")
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameter(
            f"a plot's file name must end in {', '.join(FORMATS)}, got {path.name!r}"
        )
    counts = _counts(sum(count for _, count in ratios))
    accounts = [account(_first(ratios, count), delta) for count in counts]

    axes = figure.add_subplot()
    for name, label in ACCOUNTANTS.items():
        values = [getattr(each, name) for each in accounts]
        style = {"linewidth": 2.5} if name == "epsilon_exact" else {"linestyle": "--"}
        axes.plot(counts, values, label=label, marker="o" if len(counts) == 1 else None, **style)
    axes.set(
        xlabel="iterations (releases)",
        ylabel=f"ε at δ = {delta:g}",
        title="Privacy cost of the same noise, by accountant",
    )
    if len(counts) > 1:
        axes.set_xscale("log")
        if accounts[0].epsilon_exact > 0:
            axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend()
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lower().lstrip("."), dpi=150)
    write_file(path, drawn.getvalue(), replace=True)


def _counts(total: int) -> list[int]:
    """Whole numbers from 1 to `total`, evenly spaced on a log scale."""
    steps = range(_POINTS + 1)
    return sorted({round(total ** (step / _POINTS)) for step in steps} | {1, total})


def _first(ratios: list[tuple[float, int]], count: int) -> list[tuple[float, int]]:
    """First `count` releases of `ratios`."""
    taken = []
    for ratio, available in ratios:
        if count <= 0:
            break
        taken.append((ratio, min(available, count)))
        count -= available
    return taken
