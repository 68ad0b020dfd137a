"""Empirical privacy audits: attacks that give lower bounds on the privacy loss of a training."""
