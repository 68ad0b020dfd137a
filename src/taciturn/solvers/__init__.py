"""Solvers: from ratings to profiles, each with a ledger of what its training released."""
