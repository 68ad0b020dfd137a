"""Schedules that repeat the same queries."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from taciturn.mechanisms.query import BoundedQuery
from taciturn.solvers.contract import QueryStep


def repeated(
    queries: Sequence[BoundedQuery], shares: Sequence[float], purposes: Iterable[str]
) -> tuple[QueryStep, ...]:
    """One step for each purpose, which is put before the purposes of the queries."""
    return tuple(
        QueryStep(
            queries=tuple(replace(query, purpose=purpose + query.purpose) for query in queries),
            shares=tuple(shares),
        )
        for purpose in purposes
    )
