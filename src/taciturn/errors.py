"""The exceptions of Taciturn, one tree.

::

    TaciturnError
    ├── InvalidInput        what was given is not usable; nothing was changed
    │   ├── InvalidParameter    a number or option, also a ValueError
    │   └── InvalidDocument     a ledger, certificate or other file
    ├── OutputError         a file or folder cannot be written: it exists, no permission, full disk
    ├── PrivacyError        going on would break a guarantee; nothing was released
    │   ├── BudgetExceeded      the release would spend more than the budget
    │   └── NoiseReuse          the noise belongs to other data or another release
    ├── CheckFailed         a check that was asked for did not pass
    ├── DownloadFailed      a file could not be fetched whole
    └── MissingExtra        an optional dependency is not installed

A message says what was expected, what came and what to do next, in one line, and never prints a
value that comes from private data.
"""


class TaciturnError(Exception):
    """Root of every error that Taciturn raises on purpose."""


class InvalidInput(TaciturnError):
    """What was given is not usable; nothing was changed."""


class InvalidParameter(InvalidInput, ValueError):
    """A number or option lies outside what the function accepts."""


class InvalidDocument(InvalidInput):
    """A ledger, certificate or other file cannot be read as what it should be."""


class OutputError(TaciturnError):
    """A file or folder cannot be written; what existed before is unchanged."""


class PrivacyError(TaciturnError):
    """Going on would break a guarantee; nothing was released."""


class BudgetExceeded(PrivacyError):
    """The release would spend more than the budget."""


class NoiseReuse(PrivacyError):
    """The noise belongs to other data or to another release."""


class CheckFailed(TaciturnError):
    """A check that was asked for did not pass."""


class DownloadFailed(TaciturnError):
    """A file could not be fetched whole."""


class MissingExtra(TaciturnError, ImportError):
    """An optional dependency is not installed; the message names the extra."""
