"""The sentences of a certificate.

They are part of its format: a certificate has exactly these, so that an altered one is noticed.
Once a format is published, rewording them makes a new version.
"""

from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit

STATUS = {
    Status.PROVEN: "Every release in the ledger has a proven bound and secure noise.",
    Status.CLAIMED: "The numbers are a published claim that has no valid proof. "
    "Do not rely on them.",
    Status.VOID: "The noise can be repeated by anybody, so nothing is hidden. "
    "The numbers are what secure noise would have given.",
    Status.NONE: "Not private: something left without noise. There is no guarantee.",
}

HEADING = {
    Status.PROVEN: "What is hidden",
    Status.CLAIMED: "What the claim says is hidden",
    Status.VOID: "What secure noise would have hidden",
    Status.NONE: "What is not hidden either",
}

PATTERN = "what was computed from the list of rated pairs and is published as it is: {}"

NOTES = (
    "Releases of the same data add up: together they have mu = sqrt(mu_1^2 + mu_2^2 + ...). "
    "`taciturn budget compose` computes what several cost together.",
    "Adding up holds for noise scales fixed in advance, or capped in total in advance, also over "
    "several runs: not for a scale chosen freely after seeing an earlier release. A run that "
    "stopped early because of what it saw has cost its cap, not only its sum.",
    "Training several times and keeping the run with the best held-out error is not covered: "
    "the choice itself depends on private data. Book every run, or choose without looking.",
    "A rating is one (user, item) pair with its value, after repeated rows of a pair were merged. "
    "Merging, filtering users or items by counts and dropping rows come before the guarantee: it "
    "covers a change of one rating, not of one raw row.",
    "Secure noise comes from the cipher AES-256 with a key from the operating system, so the "
    "guarantee is as strong as that cipher. The sampler's own error is part of epsilon and delta, "
    "and so is a bound on the advantage of telling the cipher's keystream from uniform bits.",
    "The guarantee holds against whoever sees this release with any other knowledge. "
    "It says nothing about what else the data owner shows to anybody.",
)

PROVES = (
    "Checking a certificate proves its arithmetic: that the ledger it carries, if true, gives "
    "these numbers and this status."
)
DOES_NOT_PROVE = (
    "It does not prove that the ledger was honestly kept: that every release was booked, "
    "with the noise and the bound it states. That rests on whoever ran the training."
)

GROUP = {
    Unit.VALUE: "For so many ratings of one person together",
    Unit.RATING: "For so many ratings of one person together",
    Unit.USER: "For so many people together",
}
