"""Card of a release: may it be published, what it guarantees and how to use it, as Markdown."""

import re

from taciturn.accounting.certificate import Certificate, delta_warning, rounded_up
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel
from taciturn.release.bundle import ITEMS, USERS
from taciturn.release.facts import Facts, from_ratings
from taciturn.release.meaning import meaning, strengths
from taciturn.release.recipe import recipe

_MEANING = {
    Status.PROVEN: "proven",
    Status.CLAIMED: "**a claim without a valid proof: do not rely on it**",
    Status.VOID: "**none: anyone can reproduce the noise**",
    Status.NONE: "**none: it is not private**",
}

_REFUSED = {
    Status.CLAIMED: "**No.** Its guarantee is a claim without a valid proof, so it is unknown "
    "how much these files reveal.",
    Status.VOID: "**No.** Its noise came from a test source, so anyone can reproduce it and "
    "subtract it.",
    Status.NONE: "**No.** It is not private: something in these files was computed from ratings "
    "without noise.",
}
"""Answers for releases that have no guarantee."""

_ANSWERS = {
    "strong protection": "**Yes, if every point below is acceptable.**",
    "moderate protection": "**Yes, if every point below is acceptable.** The protection is "
    "moderate.",
    "weak protection": "**Only with good reason.** The guarantee is proven, but the protection is "
    "weak.",
    "practically no protection": "**No.** The guarantee is proven, but the budget is so large that "
    "there is practically no protection.",
}
"""Answers for proven releases, by the protection of one rating or one user."""

_CONTENTS = {
    Status.PROVEN: "These files contain no ratings. Everything in them that depends on protected "
    "data has noise.",
    Status.CLAIMED: "These files contain no ratings, but they depend on ratings in ways for which "
    "no bound is known.",
    Status.VOID: "These files contain no ratings, but anyone who reproduces the noise can "
    "subtract it.",
    Status.NONE: "These files contain no ratings, but the profiles are exact functions of them.",
}


_LIMITS = {
    Unit.VALUE: "Which user rated which item is not protected and counts as public: publish only "
    "if it is public anyway. Several ratings of one user together are protected less than one.",
    Unit.RATING: "Which users and items exist is not protected. Several ratings of one user "
    "together are protected less than one.",
    Unit.USER: "Which items exist is not protected.",
}

_ALWAYS = (
    "**Other releases.** Releases of the same data add up. `taciturn budget compose` computes the "
    "total of those that you name; this card cannot know about others.",
    "**The choice.** If several models were trained and this one was chosen by its error on "
    "private ratings, the guarantee does not cover the choice.",
    "**Trust.** `taciturn verify DIR --public-key FILE` checks that the files belong together, "
    "that the guarantee follows from the ledger and who signed it. That the ledger is honest "
    "depends on the owner.",
)

_TITLES = {"name": "dataset", "owner": "owner", "purpose": "purpose", "contact": "contact"}


def escaped(text: str) -> str:
    """Text of the owner as inert Markdown: no markup, no HTML, no end of a table cell."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#!|~])", r"\\\1", safe)


def _head(certificate: Certificate, facts: Facts, model: FactorModel) -> list[str]:
    """Table of facts about the release."""
    rows = [(_TITLES[name], escaped(text)) for name, text in facts.about.given().items()]
    rows += [
        ("trained", f"{facts.date} (UTC), with `{facts.solver}` of Taciturn {facts.taciturn}"),
        ("rating scale", f"from {model.scale.low:g} to {model.scale.high:g}"),
        ("served", _served(model)),
        ("guarantee", _MEANING[certificate.status]),
    ]
    if certificate.status is Status.PROVEN:
        rows += [
            ("protected", f"{certificate.unit.facts.protects} (unit `{certificate.unit}`)"),
            (
                "budget",
                f"epsilon = {rounded_up(certificate.epsilon or 0.0)} at delta = "
                f"{certificate.delta!r}",
            ),
        ]
    return [
        "| fact | this release |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in rows),
    ]


def _served(model: FactorModel) -> str:
    """Form in which users are served, in words."""
    if model.prior is not None:
        return "by folding in: each user's profile is solved from that user's own ratings"
    if model.users is not None:
        return "published profiles of users"
    return "without users"


def _publish(certificate: Certificate, facts: Facts, model: FactorModel) -> list[str]:
    """Answer to the question whether the release may be published, with its conditions."""
    if certificate.status is not Status.PROVEN:
        reasons = [f"- {reason}" for reason in certificate.reasons]
        return [_REFUSED[certificate.status], *(["", *reasons] if reasons else [])]
    unit = certificate.unit
    points = [
        f"**Protected** is {unit.facts.protects}. {_LIMITS[unit]}",
        f"**Listed.** {' '.join(_listed(certificate, facts, model))}",
        *(f"**Public data** is {each.sentence}." for each in certificate.public_inputs),
        *([f"**Served.** {certificate.serving}"] if certificate.serving else []),
        *_ALWAYS,
    ]
    warning = delta_warning(certificate.delta, len(model.users)) if model.users else None
    if warning is not None:
        points.insert(1, f"**Delta is large:** {warning}.")
    answer = _ANSWERS[strengths(certificate)[0].grade]
    return [answer, "", *(f"{number}. {point}" for number, point in enumerate(points, 1))]


def _listed(certificate: Certificate, facts: Facts, model: FactorModel) -> list[str]:
    """Sentences about the ids in the release and the origin of the id lists."""
    sentences = []
    if model.users is None:
        sentences.append("No user appears in these files.")
    elif facts.user_ids == "pseudonyms":
        sentences.append(
            f"{len(model.users):,} users appear under random pseudonyms; keep the map to their ids "
            "private."
        )
        if certificate.unit is Unit.VALUE:
            sentences.append("Whoever knows which items a user rated may still recognise the user.")
    else:
        sentences.append(
            f"{len(model.users):,} users appear under their ids: publish only if the ids may be "
            "public."
        )
    if model.items is not None:
        sentences.append(f"{len(model.items):,} items appear under their ids.")
    if facts.ids_from_ratings:
        sentences.append(f"{from_ratings(facts.ids_from_ratings)}.".replace("the", "The", 1))
    return sentences


def _numbers(certificate: Certificate) -> list[str]:
    """Section on the meaning of the numbers; empty without a guarantee."""
    if certificate.status is not Status.PROVEN:
        return []
    return ["", "## What do the numbers mean?", "", *meaning(certificate)]


def _user_options(model: FactorModel) -> str:
    """Options of `taciturn recommend` that select the user."""
    if model.prior is not None:
        return "--ratings OWN-RATINGS.csv"
    has_items = model.items is not None
    return "--user ID" if has_items else "--user ID --items YOUR-ITEMS.parquet"


def _configured(facts: Facts) -> list[str]:
    """Configuration file of the training, if it had one."""
    if facts.configuration is None:
        return []
    names = ", ".join(f"`{name}`" for name in facts.configuration.command_line)
    beside = f" The command line set {names}." if names else ""
    digest = f"SHA-256 `{facts.configuration.sha256}`"
    return ["", f"The options of the training are in a configuration file with {digest}.{beside}"]


def card_text(certificate: Certificate, facts: Facts, model: FactorModel) -> str:
    """Text of card.md. Everything in it is public."""
    factors, interest = model.factor_count, model.interest_count
    coefficients = f"a bias and {factors or 'no'} factors"
    if interest:
        coefficients += f", and interest: popularity and {interest - 1 or 'no'} factors"
    lines = [
        "# Recommender released with Taciturn",
        "",
        *_head(certificate, facts, model),
        *_configured(facts),
        "",
        "## May I publish this?",
        "",
        *_publish(certificate, facts, model),
        *_numbers(certificate),
        "",
        "## Files",
        "",
        "| file | contents |",
        "|---|---|",
    ]
    if model.items is not None:
        lines.append(f"| `{ITEMS}` | {len(model.items):,} item profiles: {coefficients} |")
    if model.users is not None:
        names = "random pseudonyms" if facts.user_ids == "pseudonyms" else "their ids"
        lines.append(
            f"| `{USERS}` | {len(model.users):,} user profiles: {coefficients}; under {names} |"
        )
    lines += [
        "| `certificate.json` | the certificate, and the ledger from which it is computed |",
        "| `SHA256SUMS` | checksums; `sha256sum -c SHA256SUMS` checks them |",
        "",
        _CONTENTS[certificate.status],
        *([] if model.is_personalised else ["", f"This release is {NOT_PERSONALISED}."]),
        "",
        "## Certificate",
        "",
        "```text",
        certificate.to_text().rstrip(),
        "```",
        "",
        "`taciturn verify DIR` recomputes the certificate from the ledger and checks every file.",
        "",
        "## Use",
        "",
        "With Taciturn:",
        "",
        "```sh",
        f"taciturn recommend DIR {_user_options(model)} -k 10",
        "```",
        "",
        *recipe(model),
    ]
    return "\n".join([*lines, ""])
