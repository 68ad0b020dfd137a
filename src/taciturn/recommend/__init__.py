"""Recommendations from a release. Nothing here reads or imports the training ratings."""
