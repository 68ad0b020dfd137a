"""Benchmarks, each compared with a reference in the same run."""
