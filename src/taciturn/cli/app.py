"""The `taciturn` command: subcommands, error handling and exit codes.

Exit codes: 0 success, 1 a check failed, 2 invalid usage or input, 130 interrupted, 141 broken pipe
(the reader of the output was gone before its end).
"""

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from taciturn._internal import memory
from taciturn._version import __version__
from taciturn.cli import audit, budget, compare, data, demo, doctor, paper, private, release, train
from taciturn.cli.commands import prepared
from taciturn.cli.config import ConfigCommand
from taciturn.cli.console import fail, prepare, warn
from taciturn.cli.solvers import CatalogHelp
from taciturn.cli.start import INTERRUPTED
from taciturn.errors import CheckFailed, TaciturnError

app = typer.Typer(
    name="taciturn",
    no_args_is_help=True,
    add_completion=False,
    help="Recommenders trained under differential privacy, released with a certificate that "
    "anyone can verify.",
    epilog="Start with: taciturn demo",
)
app.add_typer(audit.app, name="audit")
app.add_typer(budget.app, name="budget")
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")
app.add_typer(private.app, name="private")
app.command(name="demo", epilog="Example: taciturn demo")(demo.demo)
app.command(name="doctor", epilog="Example: taciturn doctor --json")(doctor.doctor)

app.command(
    name="train",
    cls=ConfigCommand,
    epilog="Example: taciturn train ratings.csv --scale 1:5 --epsilon 1 -o release",
)(train.train)
app.command(
    name="compare",
    cls=CatalogHelp,
    epilog="Example: taciturn compare ml-1m --epsilons 0.5,1,2 -o comparison",
)(compare.compare)

for _name, _command, _example in (
    ("verify", release.verify, "taciturn verify release --public-key taciturn.key.pub"),
    ("keygen", release.keygen, "taciturn keygen -o taciturn.key"),
    ("recommend", release.recommend, "taciturn recommend release --user 42 -k 10"),
    ("similar", release.similar, "taciturn similar release --item 318"),
    ("predict", release.predict, "taciturn predict release --user 42 --item 318"),
    ("export", release.export, "taciturn export release --to npz -o release.npz"),
):
    app.command(name=_name, epilog=f"Example: {_example}")(_command)

# Typer re-exports BadParameter but not its base, the error of every misuse of the command line.
_UsageError: Any = typer.BadParameter.__base__


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"taciturn {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def run(arguments: list[str] | None = None) -> int:
    """Exit code of one call of the command line; errors are printed as one line on stderr."""
    command = prepared(typer.main.get_command(app))
    prepare()
    warnings.showwarning = lambda message, *_, **__: warn(str(message))
    try:
        result = command.main(args=arguments, prog_name="taciturn", standalone_mode=False)
        sys.stdout.flush()
        if result == INTERRUPTED:  # typer turns an interrupt into this exit code
            fail("interrupted")
        return result if isinstance(result, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted")
        return INTERRUPTED
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    """Print an error as one line; returns the exit code."""
    if _hides_interrupt(error):
        fail("interrupted")
        return INTERRUPTED
    if isinstance(error, _UsageError):
        _explain(error)
    elif isinstance(error, TaciturnError) or _names_no_instruction_set(error):
        fail(str(error))
    elif isinstance(error, MemoryError) or _lacks_memory_to_load(error):
        fail(f"memory ran out{memory.advice()}")
    elif isinstance(error, OSError):
        fail(_refused(error))
    elif os.environ.get("TACITURN_DEBUG"):
        raise error
    else:
        # The message may contain a private value; the exception type does not.
        fail(f"internal error ({type(error).__name__}); set TACITURN_DEBUG=1 for the traceback")
    return 1 if isinstance(error, CheckFailed) else 2


def _hides_interrupt(error: BaseException | None) -> bool:
    """True if an interrupt led to this error, as when it comes while a file is being written."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _names_no_instruction_set(error: Exception) -> bool:
    """True if the core was not loaded because of the instruction set in the environment."""
    return isinstance(error, ImportError) and str(error).startswith("TACITURN_ISA:")


def _lacks_memory_to_load(error: Exception) -> bool:
    """True if, under a memory limit, a library could not be loaded or a thread could not start."""
    is_thread = isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    return memory.is_limited() and (is_thread or isinstance(error, ImportError))


def _refused(error: OSError) -> str:
    """Message for an operation that the system refused, with the path and the reason."""
    reason = error.strerror or type(error).__name__
    if error.filename is None:
        return f"the system refused an operation: {reason}"
    where = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    advice = "; check its permissions" if isinstance(error, PermissionError) else ""
    return f"cannot use {where}: {reason}{advice}"


def _explain(error: Any) -> None:
    """Print a usage error as one line that names the relevant --help."""
    message = " ".join(error.format_message().split())
    if type(error).__name__ == "NoArgsIsHelpError":
        return  # the help was printed already
    context = getattr(error, "ctx", None)
    fail(f"{message.rstrip('.')}; see {context.command_path if context else 'taciturn'} --help")
