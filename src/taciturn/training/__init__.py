"""From ratings to a release."""
