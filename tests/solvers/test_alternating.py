"""Solvers by alternating least squares on one value for each rating, noisy or exact."""

from typing import ClassVar

import numpy as np

from taciturn.accounting.ledger import Status
from taciturn.solvers.non_private import NonPrivateSolver
from tests.solvers.contract import LearnsCheckerboard, ValueContract
from tests.solvers.helpers import random_ratings


class TestInputPerturbation(ValueContract):
    name = "input-perturbation"
    small: ClassVar = {"factors": 3, "iterations": 4}
    tightness = 0.7


class TestNonPrivate(LearnsCheckerboard):
    name = "non-private"
    small: ClassVar = {"factors": 3, "iterations": 4}
    status = Status.NONE

    def test_the_error_falls_with_every_iteration(self) -> None:
        ratings = random_ratings(2, users=60, items=40)
        pairs = ratings.rows(), ratings.by_user.columns
        errors = []
        for iterations in (1, 3, 10):
            solver = NonPrivateSolver(factors=4, iterations=iterations, regularization=1e-4)
            predicted = solver.fit(ratings).model.predict_rows(*pairs)
            errors.append(float(np.mean((predicted - ratings.values()) ** 2)))
        assert errors[0] > errors[1] > errors[2]
