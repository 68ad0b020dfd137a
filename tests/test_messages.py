"""Messages: a catalogue of all of them, kept beside the tests to be read as a whole."""

import ast
import re
import sys

from tests.messages import CATALOGUE, PACKAGE, catalogue, messages


def test_the_catalogue_is_current() -> None:
    """After a change, write it again with `python -m tests.messages` and read the difference."""
    sys.stdout.write(catalogue())
    assert CATALOGUE.read_text(encoding="utf-8") == catalogue()


def test_the_catalogue_finds_errors_warnings_and_remarks() -> None:
    source = """
raise InvalidDocument(f"line {number:,} is blank; pass {option('missing', 'drop')}")
warnings.warn("not checked", SignatureNotChecked)
error = OutputError("no room")
raise KeyError("not for users")
"""
    assert sorted(set(messages(ast.parse(source)))) == [
        "  InvalidDocument: line {number} is blank; pass --missing drop",
        "  OutputError: no room",
        "  warn: not checked",
    ]


def test_messages_are_single_sentences_without_a_full_stop() -> None:
    texts = [line.partition(": ")[2] for line in catalogue().splitlines() if line[:2] == "  "]
    assert len(texts) > 300
    assert [text for text in texts if text.endswith(".") or "\n" in text] == []


def test_the_library_spells_options_for_both_kinds_of_readers() -> None:
    """Outside the command line, an option in a message is built by `option`."""
    for layer in ("data", "evaluate", "mechanisms", "model", "recommend", "solvers", "tables"):
        for file in (PACKAGE / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise):
                    words = [
                        each.value for each in ast.walk(node) if isinstance(each, ast.Constant)
                    ]
                    typed = [word for word in words if re.search("--[a-z]", str(word))]
                    allowed = "--ratings FILE"  # an argument of `either`
                    assert not [word for word in typed if word != allowed], f"{file.name}: {typed}"
