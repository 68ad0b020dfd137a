"""General-purpose helpers that every layer may use."""
