"""Evaluation on held-out ratings. It reads private data: every result is the owner's own view."""
