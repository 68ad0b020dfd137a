"""What Gaussian releases cost: the exact curve, and the bounds it is compared with."""
