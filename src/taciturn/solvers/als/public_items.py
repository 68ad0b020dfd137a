"""Items of a training as its public ratings describe them: prior means, and their certainty."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from taciturn._internal.ids import match_rows
from taciturn.data.ratings import Ratings
from taciturn.scale import Scale
from taciturn.solvers.als.public_model import PublicModel, fit_public
from taciturn.solvers.als.stacked import RowPrior
from taciturn.solvers.contract import PublicFacts
from taciturn.solvers.descent import DescentSteps, Rows, Vector, prior_means
from taciturn.solvers.gradient import AnyState

_DRIFT = 0.2
"""Variance of the difference between private and public rows of an item with many public ratings,
as a fraction of its prior variance without them."""

_EXPLAINED = 300.0
"""Factor by which the regularization of slopes grows where there are public rows. These explain
most of what counts and features would; with large noise, slopes are mostly noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicItems:
    """Rows of the public model in the order of the items of a training, in rating units.

    Attributes
    ----------
    model
        Model of the public ratings.
    rows
        Its rows, bias first; zero for items without public ratings.
    precision
        Prior precision of each row about its public row, relative to its precision about zero.
    """

    model: PublicModel
    rows: Rows
    precision: Vector

    @classmethod
    def of(cls, facts: PublicFacts) -> "PublicItems | None":
        """Public rows of the items of a training; None without public ratings."""
        public = facts.public_ratings
        if public is None:
            return None
        model = fitted(public.ratings, facts.scale)
        places = match_rows(facts.item_ids, public.ratings.item_ids)
        known = places >= 0
        rows = np.where(known[:, None], model.rows[places], 0.0)
        left = np.where(known, model.uncertainty[places], 1.0)
        return cls(model=model, rows=rows, precision=1 / np.minimum(1.0, left + _DRIFT))

    @property
    def factors(self) -> int:
        """Number of public factors."""
        return self.model.factors

    @property
    def biases(self) -> Vector:
        """Biases of the items."""
        return np.asarray(self.rows[:, 0])

    @property
    def regressors(self) -> Rows:
        """Rows in columns of mean square 1."""
        sizes = np.sqrt(np.mean(self.rows**2, axis=0))
        regressors: Rows = self.rows / np.maximum(sizes, 1e-9)
        return regressors

    def centre(self, steps: DescentSteps, unit: float) -> Rows:
        """Prior means of rows in the coordinates of a descent, given its rating scale factor.

        A descent with fewer factors gets the first; further factors of a descent have mean zero.
        """
        shared = 1 + min(self.factors, steps.factors)
        centre = np.zeros((len(self.rows), 1 + steps.factors))
        # Users' factors have variance 1 here, and their prior variance in a descent.
        centre[:, :shared] = self.rows[:, :shared] / unit
        centre[:, 1:] /= steps.priors[-1]
        return centre

    def started(self, rows: Rows, steps: DescentSteps, unit: float) -> Rows:
        """Initial rows: public ones where there are any, as given for further factors."""
        shared = 1 + min(self.factors, steps.factors)
        after = rows.copy()
        after[:, :shared] = self.centre(steps, unit)[:, :shared]
        return after

    def begun(self, state: AnyState, steps: DescentSteps, unit: float) -> AnyState:
        """State whose items start from the public rows, with the number of factors of `steps`.

        Users start without the public factors: they are learnt from public items.
        """
        width, shared = 1 + steps.factors, 1 + min(self.factors, steps.factors)
        users = state.users[:, :width].copy()
        users[:, 1:shared] = 0
        return replace(
            state,
            users=users,
            items=self.started(state.items[:, :width], steps, unit),
            user_sums=state.user_sums[:, :width].copy(),
            item_sums=state.item_sums[:, :width].copy(),
        )

    def means(
        self, steps: DescentSteps, unit: float, rows: Rows, counts: Vector, features: Rows
    ) -> Rows:
        """Prior means of rows: public rows, and a regression of what they leave unexplained."""
        centre = self.centre(steps, unit)
        return centre + prior_means(rows - centre, counts, features)

    def prior(self, steps: DescentSteps, unit: float, counts: Vector, features: Rows) -> RowPrior:
        """Prior of rows that are determined by all gradients together."""
        found = RowPrior.by_count(counts, features)
        return replace(
            found,
            added=_EXPLAINED * found.added,
            offset=self.centre(steps, unit),
            precision=self.precision,
        )


fitted: Callable[[Ratings, Scale], PublicModel] = lru_cache(maxsize=1)(fit_public)
"""Model of public ratings, kept for further trainings on other splits."""
