"""Serving: recommendations from a release. Nothing here knows ratings or can import them."""
