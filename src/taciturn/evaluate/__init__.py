"""Evaluation on held-out ratings. It reads private data: all results are owner-only."""
