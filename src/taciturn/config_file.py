"""Configuration file of a training: TOML, with one table and a key for each option.

::

    [train]
    source = "ratings.csv"
    epsilon = 1.0

The caller says which keys there are. The command line derives them from the options of `taciturn
train`; nothing here depends on it. The bytes of a file are read once: the SHA-256 that goes into a
release is that of the settings that were used.
"""

import difflib
import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from taciturn._internal import validate
from taciturn.errors import InvalidDocument, InvalidParameter

TABLE = "train"

Value = str | int | float | bool

_SIZE_MAX = 2**15  # a file with every option has a sixth of it, and hostile TOML takes seconds
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]+@")
"""User and password in an address."""

_HEAD = (
    "Configuration of a training. Use it with: taciturn train --config FILE",
    "The SHA-256 of this file goes into the release, and whoever guesses the file can confirm the "
    "guess: keep passwords, keys and statistics of the ratings out of it.",
    "Keys are the options of taciturn train. To set one, remove the # before it and replace the "
    "word in capitals. Relative paths are relative to the folder in which the command runs.",
)


class Kind(StrEnum):
    """Type of a value, in the words of an error message."""

    TEXT = "text in quotes"
    NUMBER = "a number"
    COUNT = "a whole number"
    FLAG = "true or false"


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of the file: an option without its leading dashes.

    `default` is None if the option has no fixed default. `placeholder` stands for a value.
    """

    name: str
    kind: Kind
    default: Value | None
    help: str
    placeholder: str

    def accepts(self, value: object) -> bool:
        """True if a value from a file has the right type."""
        if isinstance(value, bool) or self.kind is Kind.FLAG:
            return isinstance(value, bool) and self.kind is Kind.FLAG
        if self.kind is Kind.NUMBER:
            return isinstance(value, int | float)
        return isinstance(value, int if self.kind is Kind.COUNT else str)

    def parse(self, text: str | bool) -> Value:
        """Value of an option given as text on the command line, or as a flag."""
        if self.kind is Kind.FLAG or isinstance(text, bool):
            return bool(text)
        if self.kind is Kind.TEXT:
            return text
        try:
            return int(text) if self.kind is Kind.COUNT else float(text)
        except ValueError:
            raise InvalidParameter(
                f"--{self.name} must be {self.kind}, got {validate.shown(text)}"
            ) from None


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfigFile:
    """Configuration file that was read: its values by key, and the SHA-256 of its bytes."""

    path: Path
    text: str
    sha256: str
    values: dict[str, Value]

    def place(self, name: str) -> str:
        """Path of the file, and the line of a key in it if it is found."""
        return _place(self.path, self.text, name)


def file_digest(path: str | Path) -> str:
    """SHA-256 of a configuration file, as in the facts of a release."""
    return hashlib.sha256(_content(validate.path("config", path))).hexdigest()


def read_config(path: str | Path, keys: Sequence[Key]) -> ConfigFile:
    """Read a configuration file; raises if it has an unknown key or a value of a wrong type."""
    path = Path(path)
    content = _content(path)
    try:
        text = content.decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidDocument(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise InvalidDocument(f"{path} is not valid TOML: it is nested too deeply") from None
    except ValueError:
        raise InvalidDocument(f"{path} is not valid TOML: a number is too long") from None
    known = {key.name: key for key in keys}
    table = _table(path, text, document, known)
    for name, value in table.items():
        if name not in known:
            _unknown(path, text, name, known)
        if not known[name].accepts(value):
            shown = validate.shown(value if isinstance(value, Value) else type(value).__name__)
            raise InvalidDocument(
                f"{_place(path, text, name)}: {name} must be {known[name].kind}, got {shown}"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidDocument(
                f"{_place(path, text, name)}: {name} is outside the range of whole numbers in "
                "TOML, −2^63 to 2^63 − 1"
            )
        if isinstance(value, str) and _PASSWORD.search(value):
            raise InvalidDocument(
                f"{_place(path, text, name)}: {name} contains a password; the file is made to be "
                "shown to others, so keep passwords out of it"
            )
    digest = hashlib.sha256(content).hexdigest()
    return ConfigFile(path=path, text=text, sha256=digest, values=table)


def config_text(keys: Sequence[Key], values: Mapping[str, Value]) -> str:
    """Text of a configuration file with a comment on every key.

    Keys without a value have their default, or are commented out if they have none.
    """
    lines = [line for sentence in _HEAD for line in _comment(sentence)]
    lines += ["", f"[{TABLE}]"]
    for key in keys:
        value = values.get(key.name, key.default)
        lines += ["", *_comment(key.help)]
        if value is not None:
            lines.append(f"{key.name} = {toml_value(value)}")
        else:
            quote = '"' if key.kind is Kind.TEXT else ""
            lines.append(f"# {key.name} = {quote}{key.placeholder}{quote}")
    return "\n".join([*lines, ""])


def toml_value(value: Value) -> str:
    """A value in TOML."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidParameter(
                f"{validate.shown(value)} is not Unicode text, so a file cannot hold it"
            ) from None
        # Strings of JSON are strings of TOML, but for the one control character that JSON allows.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value) if isinstance(value, bool) else repr(value)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_SIZE_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid path"
        raise InvalidDocument(f"cannot read the configuration {path}: {reason}") from None
    if len(content) > _SIZE_MAX:
        raise InvalidDocument(f"{path} is larger than 32 KiB, so it is not a configuration file")
    return content


def _table(
    path: Path, text: str, document: dict[str, Any], known: Mapping[str, Key]
) -> dict[str, Any]:
    """The only table of a file."""
    for name, value in document.items():
        if name == TABLE and isinstance(value, dict):
            continue
        problem = f"{validate.shown(name)} is unknown; the only table is [{TABLE}]"
        if name in known:
            problem = f"{name} belongs under [{TABLE}]: write this line above it"
        raise InvalidDocument(f"{_place(path, text, name)}: {problem}")
    table = document.get(TABLE)
    if table is None:
        raise InvalidDocument(f"{path} has no table [{TABLE}]")
    return dict(table)


def _unknown(path: Path, text: str, name: str, known: Mapping[str, Key]) -> NoReturn:
    """Raise for an unknown key, with the nearest known one."""
    near = difflib.get_close_matches(name.replace("_", "-"), known, n=1)
    advice = f"did you mean {near[0]}?" if near else "taciturn train --show-config lists the keys"
    raise InvalidDocument(
        f"{_place(path, text, name)}: {validate.shown(name)} is not an option; {advice}"
    )


def _place(path: Path, text: str, name: str) -> str:
    """Path of a file, and the line where a key or table begins if it is found."""
    escaped = re.escape(name)
    start = re.compile(
        rf"\s*(\[+\s*)?({TABLE}\s*\.\s*)?(\"{escaped}\"|'{escaped}'|{escaped})\s*[=.\]]"
    )
    before = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if start.match(line) and _is_whole(before):
            return f"{path}, line {number}"
        before += f"{line}\n"
    return str(path)


def _is_whole(text: str) -> bool:
    """True if text ends between two statements, not inside a string or list of several lines."""
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, 98, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
