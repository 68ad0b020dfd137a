"""Figures drawn with matplotlib, which the extra `plots` installs."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taciturn._internal import strict_json
from taciturn._internal.files import write_file
from taciturn._internal.optional import require

# Palette that is safe for colour blindness (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def canvas(width: float, height: float) -> Any:
    """Empty figure with a size in inches."""
    figure = require("matplotlib.figure", extra="plots").Figure
    return figure(figsize=(width, height), layout="constrained")


def saved(drawing: Any, ending: str) -> bytes:
    """Content of a figure's file; `ending` is png or svg."""
    content = io.BytesIO()
    metadata = {"Date": None} if ending == "svg" else None
    drawing.savefig(content, format=ending, dpi=110, metadata=metadata)
    return content.getvalue()


def write_drawn(
    stem: Path,
    document: dict[str, Any],
    drawing: Any,
    page: Callable[[bytes], bytes],
    *,
    is_private: bool = False,
) -> list[Path]:
    """Write a result as .json, .png, .svg and an .html page with the svg; replaces older files."""
    svg = saved(drawing, "svg")
    contents = {
        "json": strict_json.dumps(document).encode(),
        "png": saved(drawing, "png"),
        "svg": svg,
        "html": page(svg),
    }
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_file(path, content, is_private=is_private, replace=True)
    return paths
