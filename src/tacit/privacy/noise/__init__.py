"""Noise: where it comes from, how it is drawn, and where its key lives."""
