"""A small table of ratings, and invariants of `Ratings`."""

from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from taciturn.data.ratings import Ratings

USERS = [3, 1, 1, 2, 3]
ITEMS = [10, 30, 10, 20, 20]
VALUES = [5.0, 1.0, 3.0, 4.0, 2.0]
TIMES = [50, 40, 30, 20, 10]
FRAME = pl.DataFrame({"user_id": USERS, "item_id": ITEMS, "rating": VALUES, "timestamp": TIMES})
EXPECTED = {(u, i): v for u, i, v in zip(USERS, ITEMS, VALUES, strict=True)}


def as_dict(ratings: Ratings) -> dict[Any, float]:
    frame = ratings.to_frame()
    triples = frame.select("user_id", "item_id", "rating").iter_rows()
    return {(user, item): value for user, item, value in triples}


def check(ratings: Ratings) -> None:
    """Check contents and structure: sorted ids, both axes consistent, all arrays read-only."""
    assert as_dict(ratings) == EXPECTED
    check_structure(ratings)


def check_text(ratings: Ratings) -> None:
    """Check contents and structure of ratings from a text file, whose ids are text."""
    assert as_dict(ratings) == {(str(u), str(i)): v for (u, i), v in EXPECTED.items()}
    check_structure(ratings)


def check_structure(ratings: Ratings) -> None:
    assert ratings.user_ids.is_sorted() and ratings.item_ids.is_sorted()
    for rows, other in ((ratings.by_user, ratings.by_item), (ratings.by_item, ratings.by_user)):
        assert rows.starts[0] == 0 and rows.starts[-1] == len(ratings)
        for begin, end in zip(rows.starts[:-1], rows.starts[1:], strict=True):
            assert (np.diff(rows.columns[begin:end]) > 0).all()
        for array in (rows.starts, rows.columns, rows.codes):
            assert not array.flags.writeable
        shape = rows.starts.size - 1, other.starts.size - 1
        mine = sparse.csr_array((rows.codes + 1.0, rows.columns, rows.starts), shape=shape)
        theirs = sparse.csr_array(
            (other.codes + 1.0, other.columns, other.starts), shape=shape[::-1]
        )
        assert (mine - theirs.T).nnz == 0


def text(separator: str, header: bool = True) -> str:
    rows = [FRAME.columns] if header else []
    rows += [list(row) for row in FRAME.iter_rows()]
    return "\n".join(separator.join(map(str, row)) for row in rows) + "\n"
