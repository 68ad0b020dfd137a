"""Gaussian mechanism: bounded queries, integer grids, noise sources, gates and run folders."""
