"""Helpers that every layer may use; nothing of the project's subject."""
