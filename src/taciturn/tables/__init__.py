"""Table reader for text, Parquet, Arrow and frames; columns and ids.

It is independent of ratings: callers pass the roles of the columns they need. Training data,
serving requests and id lists are therefore read by the same rules.
"""
