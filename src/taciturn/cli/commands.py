"""All commands of the tree, prepared before one of them runs: plain help, and names of options."""

import functools
from collections.abc import Callable
from typing import Any

import typer

from taciturn._internal.spelling import command_line


def prepared(command: Any) -> Any:
    """The command and all its subcommands, changed in place.

    The help of a flag has no type, and messages spell options as the running command does.
    """
    context = typer.Context(command)
    for option in command.get_params(context):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    if subcommands := getattr(command, "commands", None):
        for each in subcommands.values():
            prepared(each)
    elif command.callback is not None:
        command.callback = _spelling_options(command.params, command.callback)
    return command


def _spelling_options(parameters: list[Any], work: Callable[..., Any]) -> Callable[..., Any]:
    spellings = {
        each.name: list(each.opts) for each in parameters if each.param_type_name == "option"
    }

    @functools.wraps(work)
    def run(*args: Any, **kwargs: Any) -> Any:
        with command_line(lambda name: spellings.get(name, [])):
            return work(*args, **kwargs)

    return run
