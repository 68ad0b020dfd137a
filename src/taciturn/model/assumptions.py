"""Assumptions about ratings before any are seen, as fractions of the scale's width."""

RESIDUAL_DEVIATION = 0.22
"""Standard deviation of a rating about its prediction."""

BIAS_DEVIATION = 0.11
"""Standard deviation of a user's or an item's bias."""
