"""Target that reads ratings in memory: arrays, frames and sparse matrices."""

import warnings
from random import Random
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from taciturn.data import load
from tests.torture.ratings import NAMES, POLICIES, ROWS, SCALE, check_ratings
from tests.torture.target import Target, outcome

ODD: tuple[Any, ...] = (
    *(None, True, "", "7", "a", b"a", 0, -1, 7, 2**31, 2**63, -(2**63), 10**30, [1], {}, object()),
    *(
        1.5,
        -0.0,
        1e308,
        float("nan"),
        float("inf"),
        np.float32(2.5),
        np.int8(3),
        np.datetime64("NaT"),
    ),
)
DTYPES = (None, object, np.int8, np.uint64, np.float16, np.float64, np.str_, "datetime64[s]")


class ArrayTarget(Target):
    """Arrays, frames and sparse matrices with odd entries, types and shapes."""

    name, share = "arrays", 40

    def attempt(self, chance: Random) -> str:
        source = None
        while source is None:
            source = self.source(chance)
        options = chance.choice(POLICIES)
        return outcome(lambda: check_ratings(load(source, scale=SCALE, **options)))

    def source(self, chance: Random) -> object:
        """Mutated ratings in one of the forms that `load` takes; None if they cannot be built."""
        columns: list[Any] = [list(column) for column in zip(*ROWS, strict=True)]
        for _ in range(chance.choice((1, 1, 2, 9))):
            column = chance.choice(columns)
            column[chance.randrange(len(column))] = chance.choice(ODD)
        if chance.randrange(4) == 0:
            del chance.choice(columns)[: chance.choice((1, 23, 24))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.made(columns, chance)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            return None

    def made(self, columns: list[Any], chance: Random) -> object:
        """Columns in one of the forms that `load` takes."""
        match chance.randrange(3):
            case 0:
                arrays = [np.array(column, dtype=chance.choice(DTYPES)) for column in columns]
                return tuple(arrays[: chance.choice((3, 3, 4, 2))])
            case 1:
                named = dict(zip(NAMES, columns, strict=True))
                return pl.DataFrame(named, strict=bool(chance.randrange(2)))
            case _:
                rows, items, values = (np.array(column[:24]) for column in columns[1:])
                return sparse.coo_array((values, (rows, items)))
