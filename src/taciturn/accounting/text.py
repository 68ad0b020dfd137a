"""Every sentence that a certificate shows.

The sentences are part of the certificate format: reading a certificate compares them word for word,
so an altered one is noticed. Once a format is published, rewording a sentence requires a new
version. Mappings are keyed by the values of `Status` and `Unit`.
"""

from dataclasses import dataclass

TITLE = "Privacy certificate: {status}"

STATUS = {
    "proven": "Everything released that depends on protected data has a proven bound and secure "
    "noise.",
    "claimed": "The numbers are a published claim without a valid proof. Do not rely on them.",
    "void": "Generated with test noise, which anyone can reproduce: there is no guarantee. "
    "The numbers are those that secure noise would have given.",
    "none": "Not private: something was released without noise. There is no guarantee.",
}

REASON_EXACT = "released without noise: {purpose}"
REASON_TEST_NOISE = "the noise came from a test source, which anyone can reproduce"

HEADING = {
    "proven": "Protected",
    "claimed": "Claimed to be protected",
    "void": "Would be protected with secure noise",
    "none": "Not protected",
}

PROTECTED = "{heading}: {protects} (unit `{unit}`)."
NEIGHBOURS = "Two datasets are neighbours when {relation}."
STATEMENT = "epsilon = {epsilon} at delta = {delta!r}; mu = {mu}."

ATTACKER = "For an attacker who knows two neighbouring datasets and guesses which one was used:"
ATTACKER_LINE = "at a false-positive rate of {false}%, the true-positive rate is at most {true}%"

CURVE = "The same guarantee at other values of delta:"
CURVE_LINE = "delta = {delta!r}: epsilon = {epsilon}"

GROUP = {
    "value": "For groups of k ratings of one user:",
    "rating": "For groups of k ratings of one user:",
    "user": "For groups of k users:",
}
GROUP_LINE = "k = {size}: mu = {mu}, epsilon = {epsilon}"
GROUP_LINE_UNBOUNDED = "k = {size}: mu = {mu}, no guarantee"

NOT_PROTECTED = "What unit `{unit}` does not protect:"
PATTERN = "published exactly, without noise: {purpose}"

FOLD_IN = (
    "Served by folding in: no user profile is released. Each user's profile is solved exactly from "
    "the released items and that user's own ratings, and is shown to that user only. For "
    "neighbours that differ in one rating of user j, the joint view of everybody but j (the "
    "release, their own profiles and lists) is {mu}-GDP. What j sees is exact, and covered only "
    "while nobody else sees it."
)
"""Statement of joint privacy; docs/proofs/fold-in.md proves it."""

OWN_PROFILE = "the user's own profile, which is shown to that user only and is not released"

PUBLIC_INPUTS = {
    "item-features": "the item features in {name} ({count} columns, SHA-256 {sha256}): they are "
    "treated as public, and must not have been computed from the ratings",
    "public-ratings": "the public ratings in {name} ({count} ratings, SHA-256 {sha256}): they are "
    "treated as public, and so is everything that users who are also in them rated there",
}
"""Sentences about public inputs, by kind."""

NOTES = (
    "Releases of the same data compose: together they have mu = sqrt(mu_1^2 + mu_2^2 + ...). "
    "`taciturn budget compose` computes the total cost of several releases.",
    "The total holds only if all noise scales, or a cap on their total cost, were fixed in "
    "advance. This applies across runs too: scales chosen freely after seeing an earlier release "
    "are not covered. A run with a cap costs its full cap, even if its own outputs make "
    "it stop early.",
    "Training several times and keeping the run with the best held-out error is not covered, "
    "because the choice itself depends on private data. Record every run, or choose without "
    "looking at private data.",
    "A rating is one (user, item) pair with its value, after repeated rows of a pair are merged. "
    "Merging, filtering users or items by count and dropping rows happen before the guarantee "
    "applies: it covers a change of one rating, not of one raw row.",
    "Secure noise comes from the AES-256 cipher with a key from the operating system, so the "
    "guarantee is as strong as that cipher. Epsilon and delta include the error of the sampler. "
    "Delta also includes a bound on how well anyone can distinguish the cipher's output from "
    "random bits.",
    "The guarantee holds against anyone who sees this release, whatever else they know. "
    "It does not cover anything else that the data owner discloses.",
)

PROVES = "Checking a certificate proves that its numbers and its status follow from its ledger."
DOES_NOT_PROVE = (
    "It does not prove that the ledger is honest: that it lists every release, and that each had "
    "the noise and the bound recorded for it. That depends on whoever ran the training."
)


@dataclass(frozen=True, kw_only=True)
class UnitFacts:
    """Meaning of a privacy unit: its neighbouring relation, and what it does and does not protect.

    `member` is the word for one member of a group.
    """

    relation: str
    protects: str
    not_protected: tuple[str, ...]
    member: str


_SEVERAL_RATINGS = "several ratings of one user together: the lines for groups apply to them"
_SHARED_PATTERNS = (
    "what can be inferred about a user from patterns that hold without that user's data"
)

UNITS = {
    "value": UnitFacts(
        relation="one rating's value is replaced by any other value on the declared scale; the "
        "rating pattern (which user rated which item) stays the same and is treated as public",
        protects="how a user rated an item",
        not_protected=(
            "that a user rated an item: the rating pattern is treated as public",
            "how many ratings a user or an item has",
            _SEVERAL_RATINGS,
            _SHARED_PATTERNS,
        ),
        member="rating",
    ),
    "rating": UnitFacts(
        relation="one rating is added or removed",
        protects="a rating and the fact that it exists",
        not_protected=(
            "which users and items exist: both lists are treated as public",
            _SEVERAL_RATINGS,
            _SHARED_PATTERNS,
        ),
        member="rating",
    ),
    "user": UnitFacts(
        relation="all ratings of one user are added or removed",
        protects="all ratings of a user together",
        not_protected=(
            "which items exist: the list is treated as public",
            "a change in the ratings of a user who stays, even of one rating, at mu: it counts as "
            "two steps, and costs up to 2 mu",
            OWN_PROFILE,
            _SHARED_PATTERNS,
        ),
        member="user",
    ),
}
