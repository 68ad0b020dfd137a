"""Start and end of the process of a command.

Everything else is imported inside `main`, where an interrupt ends in one line.
"""

import os
import sys

INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes, as if a signal had ended the process."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
        try:  # noqa: SIM105 no import here
            os.write(2, b"error: interrupted\n")
        except OSError:
            pass  # stderr is closed
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    import signal

    from taciturn.cli.interrupts import raise_outside_imports

    # A process whose parent ignores interrupts, such as a shell's background job, ignores them too.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, raise_outside_imports)
    from taciturn.cli.streams import replace_streams
    from taciturn.errors import OutputError

    output = replace_streams()
    from taciturn.cli.app import run

    code = run(arguments)
    try:
        sys.stdout.flush()
    except OutputError:
        code = code or 2
    # The result is known: an interrupt from now on ends the process without a traceback.
    if signal.getsignal(signal.SIGINT) is raise_outside_imports:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return BROKEN_PIPE if code == 0 and output.is_broken else code
