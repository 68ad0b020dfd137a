"""Targets that read other files of owners and users: configurations, maps, profiles and titles."""

import hashlib
import io
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from taciturn._internal.encode import Private, parquet_bytes
from taciturn.cli import train
from taciturn.cli.config import config_keys
from taciturn.config_file import TABLE, config_text, read_config
from taciturn.recommend.tables import item_titles, own_ratings, read_items
from taciturn.release.pseudonyms import PSEUDONYM, USER_ID, make_pseudonyms, read_pseudonyms
from tests import commands
from tests.torture.mutators import mutate_bytes, mutate_lines
from tests.torture.target import Target, outcome, require

TOML_VALUES = (
    *("", "0", "-1", "1_000", "0x10", "0o7", "0b1", "1e400", "nan", "-inf", "9" * 30, "9" * 5000),
    *("true", "False", '""', "''", '"a\\nb"', '"\\u0000"', '"\\ud800"', '"""', "2026-01-31"),
    *("[]", "[1, 2]", "{}", "{ a = 1 }", "[" * 2000, "1.", ".5", "+1", "0x" + "f" * 300, "a", "é"),
)


class ConfigurationTarget(Target):
    """Configuration files: values are those of the TOML, of the right types, and can be written."""

    name, share = "configuration", 20

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.keys = config_keys(train.train)
        whole = config_text(self.keys, {"source": "ratings.csv", "epsilon": 1.0, "factors": 8})
        lines = [line for line in whole.split("\n") if line and not line.startswith("#")]
        self.originals = [whole, "\n".join([*lines, ""])]

    def attempt(self, chance: Random) -> str:
        original = chance.choice((self.originals[0], *self.originals[1:] * 4))
        content = self.mutated(original, chance)
        file = self.folder / "taciturn.toml"
        file.write_bytes(content)
        if chance.randrange(200) == 0:  # building the command takes a while
            return self.command(file)
        return outcome(lambda: self.read(file, content), is_unchanged=content == original.encode())

    def mutated(self, original: str, chance: Random) -> bytes:
        """Bytes of a mutated file."""
        match chance.randrange(3):
            case 0:
                return mutate_bytes(original.encode(), [original.encode()], chance)
            case 1:
                return mutate_lines(original, " = ", chance).encode()
            case _:
                lines = original.split("\n")
                key, value = chance.choice(self.keys), chance.choice(TOML_VALUES)
                lines.insert(chance.randrange(len(lines)), f"{key.name} = {value}")
                rest = [line for line in lines if not line.startswith(f"{key.name} = ")]
                return "\n".join([*rest, f"{key.name} = {value}", ""]).encode()

    def read(self, file: Path, content: bytes) -> None:
        """Read a file, and write and read it again."""
        found = read_config(file, self.keys)
        expected = tomllib.loads(content.decode())[TABLE]
        require(repr(found.values) == repr(expected), "a value is not that of the file")
        require(found.sha256 == hashlib.sha256(content).hexdigest(), "the digest is another one")
        kinds = {key.name: key for key in self.keys}
        for name, value in found.values.items():
            require(kinds[name].accepts(value), f"{name} has a wrong type")
        again = self.folder / "again.toml"
        again.write_text(config_text(self.keys, found.values), encoding="utf-8")
        values = read_config(again, self.keys).values
        lost = [
            name for name, value in found.values.items() if repr(values.get(name)) != repr(value)
        ]
        require(not lost, f"{lost} changed when written")

    def command(self, file: Path) -> str:
        """Outcome of the command, which prints one line for an error."""
        result = commands.call("train", "--config", file, "--show-config")
        require("internal error" not in result.stderr, result.stderr)
        require(result.returncode in (0, 2), f"exit code {result.returncode}")
        if result.returncode == 0:
            return "command: accepted"
        require(result.stderr.count("\n") == 1 and not result.stdout, result.stderr)
        return "command: exit code 2"


WIDTH = 2
IDS = pl.Series([*range(8, 14)])
TEXT_IDS = IDS.cast(pl.String)


def check_map(path: Path) -> None:
    """Raise a finding unless an accepted map of pseudonyms is one-to-one, also when extended."""
    found = read_pseudonyms(path)
    ids = found[USER_ID]
    new = pl.Series(["new"]) if ids.dtype == pl.String else pl.Series([-5])
    extended = make_pseudonyms(new, b"another secret", found)
    for column in (USER_ID, PSEUDONYM):
        require(extended[column].n_unique() == len(extended), f"{column} is not unique")
    require(set(ids) <= set(extended[USER_ID]), "a user lost the pseudonym")


def check_items(path: Path) -> None:
    """Raise a finding unless accepted item profiles are finite and of the right size."""
    ids = path.with_name("ids.csv")
    pl.DataFrame({"item_id": IDS}).write_csv(ids)
    found = read_items(path, WIDTH, ids if path.suffix == ".npy" else None)
    require(found.factors.shape == (len(found.ids), WIDTH), "a profile has another size")
    require(np.isfinite(found.factors).all() and np.isfinite(found.biases).all(), "not finite")


def check_titles(path: Path) -> None:
    """Raise a finding unless accepted titles are text."""
    for ids in (IDS, TEXT_IDS):
        titles = item_titles(path, ids)
        require(titles.dtype == pl.String and len(titles) == len(ids), "not one title for an item")


def check_own(path: Path) -> None:
    """Raise a finding unless the accepted ratings of a user are numbers."""
    found = own_ratings(path, IDS)
    require(all(isinstance(each, float) for each in found.values()), "a rating is not a number")


def array_bytes() -> bytes:
    """Item profiles as NumPy saves them."""
    stream = io.BytesIO()
    np.save(stream, np.ones((len(IDS), WIDTH), dtype=np.float32))
    return stream.getvalue()


class OtherTableTarget(Target):
    """Maps of pseudonyms, item profiles, titles and the ratings of one user, in all their forms."""

    name, share = "other tables", 20

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        profiles = pl.Series([[1.0, 2.0]] * len(IDS), dtype=pl.Array(pl.Float32, WIDTH))
        items = pl.DataFrame({"item_id": IDS, "bias": [0.5] * len(IDS), "profile": profiles})
        titles = pl.DataFrame({"item_id": IDS, "title": [f"Title {each}" for each in IDS]})
        own = pl.DataFrame({"item_id": IDS, "rating": [1.0, 2.0, 3.5, 4.0, 5.0, 1.5]})
        maps = [make_pseudonyms(each, b"secret") for each in (IDS, TEXT_IDS)]
        lists = items.with_columns(pl.col("profile").arr.to_list())
        self.originals: list[tuple[str, bytes, Callable[[Path], None]]] = [
            *(("map", parquet_bytes(each, private=Private.PSEUDONYMS), check_map) for each in maps),
            ("items", parquet_bytes(items, private=Private.ITEMS), check_items),
            ("items", parquet_bytes(lists), check_items),
            ("items.npy", array_bytes(), check_items),
            ("titles.csv", titles.write_csv().encode(), check_titles),
            ("titles.parquet", parquet_bytes(titles), check_titles),
            ("own.csv", own.write_csv().encode(), check_own),
            ("own.parquet", parquet_bytes(own), check_own),
        ]
        self.others = [content for _, content, _ in self.originals]

    def attempt(self, chance: Random) -> str:
        name, original, check = chance.choice(self.originals)
        if name.endswith(".csv") and chance.randrange(2):
            content = mutate_lines(original.decode(), ",", chance).encode()
        else:
            content = mutate_bytes(original, self.others, chance)
        file = self.folder / name
        file.write_bytes(content)
        return outcome(lambda: check(file), is_unchanged=content == original)
