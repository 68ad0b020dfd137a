"""Training: from ratings to a release."""
