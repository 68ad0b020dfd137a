"""State of `als` under unit `user`."""

from dataclasses import dataclass

from taciturn.solvers.als.stacked import StackedGradients
from taciturn.solvers.als.user_covariance import UserCovariance
from taciturn.solvers.descent import Rows, Vector


@dataclass(frozen=True, eq=False, kw_only=True)
class UserState:
    """Item rows, what all gradients say about them, and the released totals of the users.

    `square_sum` adds up the estimated error variances of the averaged steps.

    `ratings` is the number of ratings of a usual user, and `covariance` describes the mean
    posterior covariance of users' factors.
    """

    items: Rows
    gradients: StackedGradients
    weights: Vector
    users: float
    ratings: float
    covariance: UserCovariance
    mean: float
    rating_unit: float
    standard_deviation: float
    square_sum: float
