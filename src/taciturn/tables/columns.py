"""Which column is which: roles, the names they go by, and a map that the caller may give."""

from dataclasses import dataclass

import polars as pl

from taciturn.errors import InvalidDocument, InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Role:
    """A column that a caller looks for.

    Attributes
    ----------
    name
        What the caller calls it.
    aliases
        Names that it has in tables, in lower case; the first that occurs is taken.
    is_required
        Whether a table without it is refused.
    """

    name: str
    aliases: tuple[str, ...]
    is_required: bool = True


Roles = tuple[Role, ...]


def find_columns(
    names: list[str], roles: Roles, chosen: dict[str, str] | None = None, *, quote: bool = True
) -> dict[str, str]:
    """Column name of each role that the table has; `chosen` goes before the aliases.

    Errors list the names only with `quote`: the first line of a text file may be a private row.
    """
    chosen = dict(chosen or {})
    listed = f"the columns are {_listed(names)}" if quote else f"its first line has {len(names)}"
    known = [role.name for role in roles]
    for role, name in chosen.items():
        if role not in known:
            raise InvalidParameter(f"a column's role is one of {', '.join(known)}, got {role!r}")
        if name not in names:
            raise InvalidDocument(f"there is no column {name!r}; {listed}")
    found = dict(chosen)
    for each in roles:
        if each.name in found:
            continue
        taken = set(found.values())
        match = _match([name for name in names if name not in taken], each)
        if match is not None:
            found[each.name] = match
        elif each.is_required:
            raise InvalidDocument(
                f"no column looks like the {each.name}; {listed}; name it with columns: "
                f"{each.name}=NAME"
            )
    if len(set(found.values())) != len(found):
        raise InvalidParameter("one column cannot play two roles")
    return found


def is_header(fields: list[str], roles: Roles) -> bool:
    """Whether a first line names a column for every required role."""
    names = {field.strip().strip('"').lower() for field in fields}
    return all(names & set(role.aliases) for role in roles if role.is_required)


def column_of(frame: pl.DataFrame, role: Role) -> pl.Series | None:
    """Column of a role, None if the table has no such column."""
    found = _match(frame.columns, role)
    return frame[found] if found is not None else None


def _match(names: list[str], role: Role) -> str | None:
    by_name = {name.strip().lower(): name for name in names}
    return next((by_name[alias] for alias in role.aliases if alias in by_name), None)


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown}, …"
