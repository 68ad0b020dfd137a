"""Interest of users in items, learnt from the rating pattern beside a model of ratings."""
