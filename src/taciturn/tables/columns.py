"""Column roles: matched by known names, or by a map from the caller."""

from dataclasses import dataclass

import polars as pl

from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.fields import plain_name


@dataclass(frozen=True, kw_only=True)
class Role:
    """A column that a caller needs.

    Attributes
    ----------
    name
        Name of the role.
    aliases
        Column names to look for, in order of preference. Case, spaces, hyphens and underscores do
        not matter.
    is_required
        If true, a table without the column is refused.
    """

    name: str
    aliases: tuple[str, ...]
    is_required: bool = True

    @property
    def names(self) -> list[str]:
        """Aliases in the form of `plain_name`."""
        return [plain_name(alias) for alias in self.aliases]


Roles = tuple[Role, ...]


def find_columns(
    names: list[str], roles: Roles, chosen: dict[str, str] | None = None, *, quote: bool = True
) -> dict[str, str]:
    """Column name of each role found in the table; `chosen` takes precedence over aliases.

    Errors list the column names only with `quote`: the first line of a text file may be a private
    row.
    """
    chosen = dict(chosen or {})
    listed = f"the columns are {_listed(names)}" if quote else f"there are {len(names)} columns"
    known = [role.name for role in roles]
    for role, name in chosen.items():
        if role not in known:
            raise InvalidParameter(f"a column role must be one of {', '.join(known)}, got {role!r}")
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
                f"no column looks like the {each.name}; {listed}; name it with "
                f"{option('columns', f'{each.name}=NAME')}"
            )
    if len(set(found.values())) != len(found):
        raise InvalidParameter(
            "the same column is given for two roles; use a different column for each"
        )
    return found


def is_header(fields: list[str], roles: Roles) -> bool:
    """True if a first line names a column for every required role."""
    names = {plain_name(field) for field in fields}
    return all(names & set(role.names) for role in roles if role.is_required)


def column_of(frame: pl.DataFrame, role: Role) -> pl.Series | None:
    """Column of a role; None if the table has no such column."""
    found = _match(frame.columns, role)
    return frame[found] if found is not None else None


def _match(names: list[str], role: Role) -> str | None:
    by_name = {plain_name(name): name for name in reversed(names)}
    return next((by_name[alias] for alias in role.names if alias in by_name), None)


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown}, …"
