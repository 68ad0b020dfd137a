"""Exception hierarchy of Taciturn.

::

    TaciturnError
    ├── InvalidInput        an input is not usable; nothing was changed
    │   ├── InvalidParameter    a number or option, also a ValueError
    │   └── InvalidDocument     a ledger, certificate or other file
    ├── OutputError         a file or folder cannot be written: it exists, no permission, full disk
    ├── PrivacyError        continuing would break a guarantee; nothing was released
    │   ├── BudgetExceeded      the release would exceed the budget
    │   └── NoiseReuse          the noise belongs to other data or another release
    ├── CheckFailed         a requested check did not pass
    ├── DownloadFailed      a file could not be downloaded completely
    ├── OutOfMemory         memory does not suffice, also a MemoryError
    ├── ForkedProcess       threads that the process needs were lost in a fork
    └── MissingExtra        an optional dependency is not installed

Warnings are `UserWarning`s: `SignatureNotChecked`, `NotPersonalised` and `UnknownIds`.

A message states, in one line, what was expected, what was given and what to do next. It never
prints a private value.
"""


class TaciturnError(Exception):
    """Base class of every error that Taciturn raises on purpose."""


class InvalidInput(TaciturnError):
    """An input is not usable; nothing was changed."""


class InvalidParameter(InvalidInput, ValueError):
    """A number or option is not one that the function accepts."""


class InvalidDocument(InvalidInput):
    """A ledger, certificate or other file cannot be read or is not valid."""


class OutputError(TaciturnError):
    """A file or folder cannot be written; existing files are unchanged."""


class PrivacyError(TaciturnError):
    """Continuing would break a guarantee; nothing was released."""


class BudgetExceeded(PrivacyError):
    """The release would exceed the budget."""


class NoiseReuse(PrivacyError):
    """The noise belongs to other data or to another release."""


class CheckFailed(TaciturnError):
    """A requested check did not pass."""


class DownloadFailed(TaciturnError):
    """A file could not be downloaded completely."""


class OutOfMemory(TaciturnError, MemoryError):
    """A memory limit is too small for the work, which was not begun."""


class ForkedProcess(TaciturnError):
    """Threads that the process needs were lost in a fork; nothing was done."""


class MissingExtra(TaciturnError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class SignatureNotChecked(UserWarning):
    """A signed release was loaded without its owner's public key."""


class NotPersonalised(UserWarning):
    """A release without factors ranks items the same for every user."""


class UnknownIds(UserWarning):
    """Users or items of the ratings are not in the model and are predicted without a profile."""
