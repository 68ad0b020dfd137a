"""How far a rating may lie from its prediction, from profiles that tell how sure they are."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from taciturn.errors import InvalidParameter

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.integer[Any]]


class Uncertain(Protocol):
    """Profiles of a fit or a release: factors (n × k), and perhaps variances of biases and both."""

    @property
    def factors(self) -> Floats:
        """Profiles (n × k)."""

    @property
    def bias_variances(self) -> Floats | None:
        """Variances of the biases (n)."""

    @property
    def variances(self) -> Floats | None:
        """Variances of the profiles (n × k)."""


def deviations(
    residual_variance: float | None,
    users: Uncertain,
    items: Uncertain,
    rows: Places,
    columns: Places,
) -> Floats:
    """Return the standard deviations of ratings about their predictions, for pairs of rows.

    They come from a rating's own error, and from what is not known of both sides' biases and
    profiles, which are taken to be independent.
    """
    variance = _known(residual_variance) + _known(users.bias_variances)[rows]
    variance = variance + _known(items.bias_variances)[columns]
    of_users, of_items = _known(users.variances)[rows], _known(items.variances)[columns]
    variance += np.einsum("nk,nk->n", of_users, items.factors[columns] ** 2 + of_items)
    variance += np.einsum("nk,nk->n", users.factors[rows] ** 2, of_items)
    found: Floats = np.sqrt(variance).astype(np.float32)
    return found


def _known(part: Any) -> Any:
    if part is None:
        raise InvalidParameter(
            "these profiles do not tell how sure they are; train with uncertainty (--uncertainty)"
        )
    return part
