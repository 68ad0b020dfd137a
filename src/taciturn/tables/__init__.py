"""The one table reader: text, Parquet, Arrow and frames; columns and ids.

It knows nothing of ratings: callers pass the roles that they look for, so training, serving and id
lists read their files by the same rules.
"""
