"""`--config` and `--show-config` of `taciturn train`: options from a file and into a file.

The keys of the file are the options of the command, read off its signature. Whatever option the
command gets later is a key too.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

from taciturn.cli.console import emit_json, say
from taciturn.cli.solvers import CatalogHelp, catalog_text

if TYPE_CHECKING:
    from taciturn.config_file import ConfigFile, Key, Value
    from taciturn.release.facts import Configuration

OF_THE_CALL = ("config", "show_config", "resume", "dry_run", "json")
"""Options of one call of the command rather than of the training; no file holds them."""

WITHOUT_EFFECT = ("threads",)
"""Options that do not change a release; a certificate does not list them."""

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file of options, as --show-config prints it. Its SHA-256 goes into the "
        "certificate, with the names of further options on the command line. An option must not "
        "be in both. Default: none.",
    ),
]
ShowConfigOption = Annotated[
    bool,
    typer.Option(
        "--show-config",
        help="Print a TOML file for --config, with the options given and a comment on each; "
        "train nothing.",
    ),
]

_LOADED = "taciturn.config"


class ConfigCommand(CatalogHelp):
    """Command whose options may come from a configuration file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an option that is not on it has its value from the file."""
        parsed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        given = {name: value for name, value in parsed.items() if isinstance(value, str | bool)}
        if "help" in given or not {"config", "show_config"} & given.keys():
            return super().parse_args(ctx, args)
        keys = {_parameter(key): key for key in config_keys(self.callback)}
        if "config" in given:
            ctx.default_map = self._load(ctx, given, keys)
        if "show_config" in given:
            options = {name: keys[name].parse(given[name]) for name in keys if name in given}
            _show(list(keys.values()), (ctx.default_map or {}) | options, is_json="json" in given)
            raise typer.Exit
        return super().parse_args(ctx, args)

    @staticmethod
    def _load(
        ctx: Any, given: "dict[str, str | bool]", keys: "dict[str, Key]"
    ) -> "dict[str, Value]":
        """Values of the file by parameter; raises if the command line has one of them too."""
        from taciturn.config_file import read_config
        from taciturn.errors import InvalidParameter

        file = read_config(str(given["config"]), list(keys.values()))
        values = {
            name: file.values[key.name] for name, key in keys.items() if key.name in file.values
        }
        for name in values:
            if name in given:
                key = keys[name]
                raise InvalidParameter(
                    f"{file.place(key.name)}: {key.name} is also on the command line; set it in "
                    "one place only"
                )
        beside = sorted(
            key.name for name, key in keys.items() if name in given and name not in WITHOUT_EFFECT
        )
        ctx.meta[_LOADED] = (file, beside)
        return values


def configuration(context: typer.Context) -> "Configuration | None":
    """Facts for the certificate about the configuration file of a command; None without one."""
    from taciturn.release.facts import Configuration

    loaded: tuple[ConfigFile, list[str]] | None = context.meta.get(_LOADED)
    if loaded is None:
        return None
    file, beside = loaded
    return Configuration(sha256=file.sha256, command_line=tuple(beside))


def config_keys(command: Callable[..., Any] | None) -> "list[Key]":
    """Keys of the configuration file: all options of the command but those of a single call."""
    from taciturn.config_file import Key

    keys = []
    for name, parameter in inspect.signature(command or (lambda: None)).parameters.items():
        if name in OF_THE_CALL or parameter.annotation is typer.Context:
            continue
        kind, (info, *_) = parameter.annotation.__origin__, parameter.annotation.__metadata__
        default = parameter.default
        keys.append(
            Key(
                name=name.replace("_", "-"),
                kind=_kind(kind),
                default=None if default is inspect.Parameter.empty else default,
                help=_panel(info.rich_help_panel) + catalog_text(info.help),
                placeholder=info.metavar or name.upper(),
            )
        )
    return keys


def _kind(annotation: Any) -> Any:
    """Type of an option's value; raises for a type that no file can hold yet."""
    from taciturn.config_file import Kind

    kinds = {str: Kind.TEXT, Path: Kind.TEXT, float: Kind.NUMBER, int: Kind.COUNT, bool: Kind.FLAG}
    is_union = get_origin(annotation) in (Union, UnionType)
    members = get_args(annotation) if is_union else (annotation,)
    (plain,) = [each for each in members if each is not NoneType]
    return kinds[plain]


def _panel(panel: str | None) -> str:
    """Solver that an option belongs to, as the beginning of its comment."""
    return "" if panel is None else f"{panel.replace('Options of', 'With')}: "


def _parameter(key: "Key") -> str:
    return key.name.replace("-", "_")


def _default_unit(values: "dict[str, Value]") -> str | None:
    """Privacy unit that a training gets if none is chosen; None if one has to be, or there is none.

    It depends on the solver, so it is no default of the option. A file that is reviewed names it.
    """
    from taciturn.accounting.units import DEFAULT_UNIT
    from taciturn.solvers.catalog import CATALOG

    entry = CATALOG.get(str(values.get("solver")))
    is_default = entry is not None and entry.is_private and entry.default_unit is DEFAULT_UNIT
    return DEFAULT_UNIT.value if is_default else None


def _show(keys: "list[Key]", values: "dict[str, Value]", *, is_json: bool) -> None:
    """Print a configuration file, or its values as JSON."""
    from taciturn.config_file import TABLE, config_text

    named = {key.name: values.get(_parameter(key), key.default) for key in keys}
    known = {name: value for name, value in named.items() if value is not None}
    if (unit := _default_unit(known)) is not None:
        known.setdefault("unit", unit)
    if is_json:
        emit_json({TABLE: known})
        return
    say(config_text(keys, known).rstrip("\n"))
