"""Queries over ratings, each with its sensitivity and its proof."""
