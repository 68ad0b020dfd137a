"""Noise-aware alternating least squares, the default solver."""
