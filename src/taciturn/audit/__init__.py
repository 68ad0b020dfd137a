"""Audits: what an attacker really gains, beside what is claimed."""
