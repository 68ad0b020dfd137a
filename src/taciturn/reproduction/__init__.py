"""Reproduction of the paper's experiments, and evidence for the gap in its proof."""
