"""Solvers: they train profiles from ratings and record every release in a ledger."""
