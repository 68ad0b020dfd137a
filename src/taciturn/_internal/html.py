"""Self-contained HTML pages: tables and images in one file that loads nothing from elsewhere."""

import base64
from collections.abc import Sequence
from html import escape

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.note { color: #555; } code { background: #f4f4f4; padding: 0 .2rem; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818; }
       img { background: #fff; } th, td { border-color: #444; } .note { color: #aaa; }
       code { background: #333; } }
"""


def page(title: str, parts: Sequence[str]) -> bytes:
    """HTML page with a title and parts, which are HTML already."""
    text = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )
    return text.encode()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table of text cells."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def summary(title: str, facts: Sequence[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    """Title, notes and a table of names and facts, for a notebook. All are plain text.

    A name that is repeated is shown once.
    """
    style = "style='text-align: left; vertical-align: top; padding: 1px 16px 1px 0'"
    before = ["", *(name for name, _ in facts)]
    rows = "".join(
        f"<tr><th {style}>{'' if name == last else escape(name)}</th>"
        f"<td {style}>{escape(fact)}</td></tr>"
        for last, (name, fact) in zip(before, facts, strict=False)
    )
    said = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return f"<div><strong>{escape(title)}</strong>{said}<table><tbody>{rows}</tbody></table></div>"


def picture(svg: bytes, name: str) -> str:
    """HTML image element with the svg embedded."""
    content = base64.b64encode(svg).decode()
    return f"<img alt='{escape(name)}' src='data:image/svg+xml;base64,{content}'>"
