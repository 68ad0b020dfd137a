"""Privacy accounting: the exact cost of Gaussian releases, and the bounds it is compared with."""
