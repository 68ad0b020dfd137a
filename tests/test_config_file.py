"""Configuration files: reading, errors with a line, and writing."""

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.config_file import Key, Kind, Value, config_text, file_digest, read_config, toml_value
from taciturn.errors import InvalidDocument, InvalidParameter


def key(name: str, kind: Kind, default: Value | None = None) -> Key:
    return Key(name=name, kind=kind, default=default, help=f"Help of {name}.", placeholder="WORD")


KEYS = [
    key("source", Kind.TEXT),
    key("epsilon", Kind.NUMBER),
    key("epsilon-i", Kind.NUMBER),
    key("factors", Kind.COUNT),
    key("seed", Kind.COUNT, 0),
    key("unit", Kind.TEXT, "rating"),
    key("no-header", Kind.FLAG, False),
]


def written(folder: Path, text: str) -> Path:
    file = folder / "taciturn.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_values_and_the_digest_come_from_the_same_bytes(tmp_path: Path) -> None:
    text = '[train]\nsource = "é.csv"\nepsilon = 1\nfactors = 8\nno-header = true\n'
    file = read_config(written(tmp_path, text), KEYS)
    assert file.values == {"source": "é.csv", "epsilon": 1, "factors": 8, "no-header": True}
    assert file.sha256 == hashlib.sha256(text.encode()).hexdigest() == file_digest(file.path)


MISTAKES = {
    "[train]\n\nepsilom = 1": "line 3: 'epsilom' is not an option; did you mean epsilon?",
    "[train]\nno_header = true": "line 2: 'no_header' is not an option; did you mean no-header?",
    "[train]\nzzz = 1": "line 2: 'zzz' is not an option; taciturn train --show-config lists",
    '[train]\nepsilon = "1"': "line 2: epsilon must be a number, got '1'",
    "[train]\nepsilon = true": "line 2: epsilon must be a number, got True",
    "[train]\nfactors = 8.0": "line 2: factors must be a whole number, got 8.0",
    "[train]\nno-header = 1": "line 2: no-header must be true or false, got 1",
    "[train]\nsource = 3": "line 2: source must be text in quotes, got 3",
    "[train]\n\nsource = ['a', 'b']": "line 3: source must be text in quotes, got 'list'",
    "[train]\nseed = 2026-11-18": "line 2: seed must be a whole number, got 'date'",
    "epsilon = 1\n[train]": r"line 1: epsilon belongs under \[train\]",
    "[train]\n[train.epsilon]\na = 1": "line 2: epsilon must be a number, got 'dict'",
    "[train]\nepsilon.i = 1": "line 2: epsilon must be a number, got 'dict'",
    "[train]\nepsilon = 1\n\n[register]\nx = 1": r"line 4: 'register' is unknown; the only table",
    "train = 3": "line 1: 'train' is unknown",
    "# nothing": r"has no table \[train\]",
    "[train]\nepsilon = 1\nepsilon = 2\n": "not valid TOML: .*line 3",
    "[train]\nepsilon = \n": "not valid TOML: .*line 2",
    "train = " + "[" * 5000: "not valid TOML: it is nested too deeply",
    "[train]\nseed = " + "9" * 5000: "not valid TOML: a number is too long",
    "[train]\nepsilon = 0x" + "f" * 5000: "line 2: epsilon is outside the range of whole numbers",
    '[train]\nsource = "postgresql://me:secret@host/db"': "line 2: source contains a password",
    # The key is on the line where its statement begins, not where its name first appears.
    '[train]\nsource = """\nseed = 5\n"""\nunit = "x"\n"seed" = "a"': "line 6: seed must be",
    "# epsilon = 3\ntrain.epsilon = 'x'": "line 2: epsilon must be a number",
    "train = { epsilon = 'x' }": "taciturn.toml: epsilon must be a number",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:30])
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidDocument, match=MISTAKES[text]) as caught:
        read_config(written(tmp_path, text), KEYS)
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"[train]\nsource = '\xe9'\n")
    (tmp_path / "large").write_bytes(b"#" * (2**15 + 1))
    for name, problem in (
        ("latin", "not UTF-8"),
        ("large", "larger than 32 KiB"),
        ("missing", "No such file"),
        (".", "Is a directory"),
    ):
        with pytest.raises(InvalidDocument, match=problem):
            read_config(tmp_path / name, KEYS)


def test_a_written_file_explains_every_key_and_pins_defaults(tmp_path: Path) -> None:
    text = config_text(KEYS, {"epsilon": 0.5, "source": 'a "b"\\c'})
    file = read_config(written(tmp_path, text), KEYS)
    assert file.values == {
        "source": 'a "b"\\c',
        "epsilon": 0.5,
        "seed": 0,
        "unit": "rating",
        "no-header": False,
    }
    lines = text.splitlines()
    for each in KEYS:
        assert f"# Help of {each.name}." in lines
    assert "# factors = WORD" in lines and max(map(len, lines)) <= 100
    assert file.place("epsilon").endswith(f"line {lines.index('epsilon = 0.5') + 1}")
    again = config_text(KEYS, file.values)
    assert again == text


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(VALUES)
def test_toml_reads_back_what_was_written(value: Value) -> None:
    (found,) = tomllib.loads(f"key = {toml_value(value)}").values()
    assert found == value and type(found) is type(value)


def test_text_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not Unicode text"):
        toml_value("\udce9.csv")


def test_text_of_an_option_becomes_a_value() -> None:
    values: dict[str, str | bool] = {
        "source": "7",
        "epsilon": "1e-3",
        "factors": "8",
        "no-header": True,
    }
    named = {each.name: each for each in KEYS}
    found = {name: named[name].parse(text) for name, text in values.items()}
    assert found == {"source": "7", "epsilon": 0.001, "factors": 8, "no-header": True}
    with pytest.raises(InvalidParameter, match="--factors must be a whole number, got '8.5'"):
        named["factors"].parse("8.5")
