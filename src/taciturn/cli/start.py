"""Start and end of the process of a command.

Everything else is imported inside `main`, where an interrupt ends in one line.
"""

import os
import sys

INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes, as if a signal had ended the process."""


_LIGHT = ("budget", "export", "keygen", "predict", "recommend", "similar", "verify")
"""Commands that read no ratings."""

_OVERVIEW: tuple[list[str], ...] = ([], ["--help"], ["--version"])
"""Arguments for which no command is imported."""

_MIB = 2**20


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
        _write("error: interrupted\n")
    sys.exit(code)


def _write(message: str) -> None:
    try:  # noqa: SIM105 no import here
        os.write(2, message.encode())
    except OSError:
        pass  # stderr is closed


def _memory_problem(arguments: list[str]) -> str | None:
    """Message if the libraries of a command do not fit into the memory limits of the process.

    Below these limits libraries abort the process or wait for threads that never start. They need
    address space for every thread.
    """
    from taciturn._internal.memory import start_problem

    if not arguments or {"--help", "--version"} & set(arguments):
        return None
    if arguments[0] in _LIGHT:
        return start_problem(address_space=900 * _MIB, data=350 * _MIB)
    threads = min(os.cpu_count() or 1, 4)
    return start_problem(address_space=(1000 + 450 * threads) * _MIB, data=500 * _MIB)


def _run(arguments: list[str] | None) -> int:
    import signal

    if (problem := _memory_problem(sys.argv[1:] if arguments is None else arguments)) is not None:
        _write(f"error: {problem}\n")
        return 2

    from taciturn.cli.interrupts import raise_outside_imports

    # A process whose parent ignores interrupts, such as a shell's background job, ignores them too.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, raise_outside_imports)
    from taciturn.cli.streams import replace_streams
    from taciturn.errors import OutputError

    output = replace_streams()
    given = sys.argv[1:] if arguments is None else arguments
    if given in _OVERVIEW:
        from taciturn.cli.overview import run_overview

        code = run_overview(given)
    else:
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
