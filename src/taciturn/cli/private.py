"""`taciturn private`: list and delete the private files that Taciturn left on a disk."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import emit_json, note, printable, say, table, warn
from taciturn.cli.options import Json, age_option

if TYPE_CHECKING:
    from taciturn.training.private_files import Found

app = typer.Typer(
    no_args_is_help=True,
    help="List and delete private files: run folders, maps of pseudonyms, caches and reports.",
    epilog="Example: taciturn private list",
)

Folders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", help="Folders to search. Default: the current folder."),
]
OlderThan = Annotated[
    timedelta | None,
    age_option("Only files unchanged for this long, such as 30d, 12h or 2w. Default: all."),
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="KIND,…",
        help="Only these kinds: run (run folders), pseudonyms (maps), items (profiles without "
        "noise), cache, report, leftover (temporary files), key (signing keys). Default: all.",
    ),
]


@app.command("list", epilog="Example: taciturn private list /srv/recommender --older-than 30d")
def list_(
    folders: Folders = None,
    older_than: OlderThan = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """List private files that Taciturn wrote, with their age and size.

    Files are recognised by their content, wherever they are. Releases are public and not listed.
    """
    now = datetime.now(UTC)
    found = _find(folders, older_than, only, now)
    if json:
        emit_json({"view": "owner", "found": [_document(each, now) for each in found]})
        return
    _show(found, now)


@app.command(epilog="Example: taciturn private clean --only run,cache --older-than 30d --yes")
def clean(
    folders: Folders = None,
    older_than: OlderThan = None,
    only: Only = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Delete without asking. Default: ask, and delete nothing without a terminal.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Delete private files that Taciturn wrote.

    Lists the files first. Releases, signing keys and the run folder of a running training are never
    deleted. A deleted run cannot be resumed, and the noisy answers in it still count towards the
    privacy cost.
    """
    from taciturn.training.private_files import delete

    now = datetime.now(UTC)
    found = _find(folders, older_than, only, now)
    chosen = [each for each in found if not each.kept]
    if not json:
        _show(found, now)
    is_wanted = bool(chosen) and (yes or (not json and _asked(len(chosen))))
    reasons = {each.path: delete(each) for each in chosen} if is_wanted else {}
    deleted = [each for each in chosen if reasons.get(each.path) == ""]
    for path, reason in reasons.items():
        if reason:
            note(f"{path} was not deleted: {reason}")
    if json:
        document = {
            "view": "owner",
            "deleted": [str(each.path) for each in deleted],
            "found": [_document(each, now) for each in found],
        }
        emit_json(document)
    elif is_wanted:
        say(f"deleted {len(deleted)} of {len(found)}")
    if chosen and not is_wanted:
        note("nothing was deleted; pass --yes to delete")


def _find(
    folders: list[Path] | None, older_than: timedelta | None, only: str | None, now: datetime
) -> "list[Found]":
    from taciturn._internal import validate
    from taciturn.training.private_files import Kind, find_private

    names = list(Kind) if only is None else only.split(",")
    kinds = {validate.choice("--only", name.strip(), Kind) for name in names}
    search = find_private(folders or [Path()], now=now)
    for path in search.unreadable:
        warn(f"{path} cannot be read, so private files in it are not listed")
    least = older_than or timedelta(0)
    return [each for each in search.found if each.kind in kinds and each.age(now) >= least]


def _asked(count: int) -> bool:
    """Answer of the user; no if the command has no terminal."""
    if not sys.stdin.isatty():
        return False
    return typer.confirm(f"Delete {count} private {'file' if count == 1 else 'files'}?", err=True)


def _show(found: "list[Found]", now: datetime) -> None:
    rows = []
    for each in found:
        remarks = [each.kind.words, _size(each.size), each.detail]
        if each.kept:
            remarks.append(f"kept: {each.kept}")
        remark = "; ".join(filter(None, remarks))
        rows.append((printable(str(each.path)), _age(each.age(now)), remark))
    say(table(rows) if rows else "no private files found")


def _document(found: "Found", now: datetime) -> dict[str, Any]:
    return {
        "path": str(found.path),
        "kind": found.kind.value,
        "bytes": found.size,
        "modified": found.modified.isoformat(timespec="seconds"),
        "age_days": round(found.age(now) / timedelta(days=1), 3),
        "detail": found.detail or None,
        "kept": found.kept or None,
    }


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}"


def _age(age: timedelta) -> str:
    for name, length in (
        ("day", timedelta(days=1)),
        ("hour", timedelta(hours=1)),
        ("minute", timedelta(minutes=1)),
    ):
        count = age // length
        if count:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "just now"
