"""One reader of tables: text, Parquet, Arrow and frames; columns and ids."""
