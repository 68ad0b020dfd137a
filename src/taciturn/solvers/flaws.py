"""Flaws of the published algorithm's claim, as stated in events."""

FALSE_THEOREM = (
    "The published theorem is false: it bounds every step as if the item profiles did not depend "
    "on the changed rating. They are updated with the raw gradient and never noised, so from the "
    "second step on one rating moves the gradients of every user who rated that item."
)
CENTRED = "Ratings were centred by exact item means, which the claimed bound does not count."
STOPPED = "The run stopped by its training error, which depends on the ratings."
LARGE = (
    "epsilon_i is not below 1, where the classical Gaussian mechanism that the claim builds on "
    "does not hold."
)
NARROW = "The noise was scaled for a range below that of the declared scale."
FLAWS = (FALSE_THEOREM, CENTRED, STOPPED, NARROW, LARGE)
"""Flaws of the paper's claim, in the order in which an event states them."""
