"""Alternating least squares on one noisy value for each rating."""

from typing import ClassVar

from tests.solvers.contract import ValueContract


class TestInputPerturbation(ValueContract):
    name = "input-perturbation"
    small: ClassVar = {"factors": 3, "iterations": 4}
    tightness = 0.7
