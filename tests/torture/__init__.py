"""Mutated inputs and killed processes, in a short form for tests and a long one: make torture."""
