"""From a bounded query to a noisy answer: grid, noise, gate, run folder."""
