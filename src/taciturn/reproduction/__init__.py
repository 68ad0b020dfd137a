"""Reproduction of the paper's experiments, and measurement of the gap in its proof."""
