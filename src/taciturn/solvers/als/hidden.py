"""Training under the units `rating` and `user`, which hide more than how somebody rated."""

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.als.rating import RatingDescent
from taciturn.solvers.als.user import UserDescent
from taciturn.solvers.contract import Fit, Session, Solver, needed_budget, settings
from taciturn.solvers.run import Run, asked_by, planned

_KINDS: dict[Unit, type[RatingDescent] | type[UserDescent]] = {
    Unit.RATING: RatingDescent,
    Unit.USER: UserDescent,
}


def fit_hidden(
    solver: Solver,
    unit: Unit,
    ratings: Ratings,
    budget: Budget | None,
    session: Session,
    *,
    factors: int | None = None,
    iterations: int | None = None,
) -> Fit:
    """Train under a unit that hides who rated what. Reads private data; see `Fit`."""
    budget = needed_budget(solver, budget)
    run = Run(session)
    descent = _KINDS[unit](ratings, budget, factors, iterations)
    gate = run.gate(unit, budget, asked_by(descent))
    state = run.descend(descent, gate, descent.values(ratings))
    ledger = run.finish()
    if isinstance(descent, RatingDescent):
        mean, users, items = descent.profiles(state)
        return Fit(
            solver=solver.name,
            settings=settings(solver),
            model=FactorModel(
                scale=ratings.scale,
                mean=mean,
                users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
                items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ),
            ledger=ledger,
        )
    mean, items = descent.profiles(state)
    prior = descent.prior(state)
    found = Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:])
    people = descent.people(state, ratings, session.threads)
    return Fit(
        solver=solver.name,
        settings=settings(solver),
        model=FactorModel(
            scale=ratings.scale,
            mean=mean,
            users=None,
            items=found,
            prior=prior,
        ),
        private_users=Profiles(ids=ratings.user_ids, biases=people[:, 0], factors=people[:, 1:]),
        ledger=ledger,
    )


def plan_hidden(
    solver: Solver,
    unit: Unit,
    ratings: Ratings,
    budget: Budget | None,
    *,
    factors: int | None = None,
    iterations: int | None = None,
) -> list[Event]:
    """Return the events that `fit_hidden` would book. Reads public facts only.

    The ratios of sensitivity and noise are those of `fit_hidden`. The scale of both is that of the
    residuals, and tables may have fewer columns: neither is known before something is released.
    """
    budget = needed_budget(solver, budget)
    descent = _KINDS[unit](ratings, budget, factors, iterations)
    return [*planned(unit, budget, asked_by(descent))]
