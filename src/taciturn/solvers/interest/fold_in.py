"""Interest vectors of many users at once, from exact items: the regression of `InterestItems`."""

import numpy as np
import numpy.typing as npt

from taciturn._internal.ridge import solve_rows
from taciturn.data.pattern import Pattern
from taciturn.model.interest import Interest, InterestItems, popularity_alone, row_products
from taciturn.solvers.descent import Rows

_NO_BIAS = 1e30
"""Regularization with which the bias of a regression vanishes."""


def folded_interests(
    pattern: Pattern, items: InterestItems, interest: Interest, threads: int | None = None
) -> npt.NDArray[np.float32]:
    """Interest vector of every user, as folding in gives it.

    Reads the pattern without noise: as private as the pattern. A row depends on the items of one
    user alone, in all its bits.
    """
    vectors = items.vectors.astype(np.float64)
    rows = implicit_rows(pattern, vectors, interest, threads, by_row=True)
    rows[pattern.counts == 0] = popularity_alone(rows.shape[1])
    return items.scaled(rows)


def implicit_rows(
    pattern: Pattern,
    counterparts: Rows,
    interest: Interest,
    threads: int | None = None,
    targets: npt.NDArray[np.float32] | None = None,
    *,
    by_row: bool = False,
) -> Rows:
    """Rows y that minimise Σ (t − φᵀy)² over the pattern plus α Σ (φᵀy)² over all counterparts.

    Plus λ ‖y‖² for each unit of weight. Targets t are 1 by default. A row without entries is zero.
    With `by_row`, the bits of a row do not depend on the others, which takes longer.
    """
    # In the axes of Σ φφᵀ, everything that is added to a row's normal equations is diagonal.
    values, axes = np.linalg.eigh(counterparts.T @ counterparts)
    turned = np.column_stack([np.zeros(len(counterparts)), counterparts @ axes])
    unseen = interest.unseen_weight
    added = unseen * np.maximum(values, 0.0)
    added += interest.regularization * unseen * len(counterparts)
    if targets is None:
        targets = np.ones(pattern.entries, dtype=np.float32)
    found = solve_rows(
        pattern.starts,
        pattern.columns,
        targets,
        turned,
        by_count=np.concatenate([[0.0], np.full(len(added), interest.regularization)]),
        fixed=np.concatenate([[_NO_BIAS], added]),
        threads=threads,
    )
    rows: Rows = row_products(found[:, 1:], axes.T) if by_row else found[:, 1:] @ axes.T
    return rows
