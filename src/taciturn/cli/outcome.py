"""Error handling of the command line, and its exit codes.

Exit codes: 0 success, 1 a check failed, 2 invalid usage or input, 130 interrupted, 141 broken pipe
(the reader of the output was gone before its end).
"""

import os
import sys
import warnings
from typing import Any

import typer

from taciturn._internal import memory
from taciturn.cli.console import fail, prepare, warn
from taciturn.cli.start import INTERRUPTED
from taciturn.errors import CheckFailed, TaciturnError

# Typer re-exports BadParameter but not its base, the error of every misuse of the command line.
_UsageError: Any = typer.BadParameter.__base__


def outcome(command: Any, arguments: list[str] | None) -> int:
    """Exit code of one call of a command; errors are printed as one line on stderr."""
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
