"""The card of a release: what it is, what it guarantees and how to use it, for people."""

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Status
from taciturn.model.fold_in import Prior
from taciturn.release.bundle import ITEMS, USERS, Facts

_MEANING = {
    Status.PROVEN: "Its guarantee is proven.",
    Status.CLAIMED: "**Its guarantee is a claim without a valid proof: do not rely on it.**",
    Status.VOID: "**It has no guarantee: its noise can be repeated by anybody.**",
    Status.NONE: "**It is not private and has no guarantee.**",
}

_CONTENTS = {
    Status.PROVEN: "No ratings and no exact statistic of them are in these files.",
    Status.CLAIMED: "No ratings are in these files, but what is in them depends on ratings in ways "
    "that nobody has bounded.",
    Status.VOID: "No ratings are in these files, but whoever repeats the noise can take it off.",
    Status.NONE: "No ratings are in these files, but the profiles are exact functions of them.",
}


def _whom(facts: Facts, files: list[str]) -> str:
    """Return the options that say whom to recommend to."""
    if facts.prior is not None:
        return "--ratings OWN-RATINGS.csv"
    return "--user ID" if ITEMS in files else "--user ID --items YOUR-ITEMS.parquet"


def _folding(facts: Facts, prior: Prior) -> list[str]:
    """Return how somebody finds their own profile; on their own side, from their own ratings."""
    return [
        f'items = pl.read_parquet("{ITEMS}")',
        'mine = pl.DataFrame({"item_id": [...], "rating": [...]})  # yours, kept private',
        'rated = mine.join(items, on="item_id")',
        'design = np.column_stack([np.ones(len(rated)), rated["profile"].to_numpy()])',
        f'target = rated["rating"].to_numpy() - {facts.mean!r} - rated["bias"].to_numpy()',
        f"ridge = {prior.residual_variance!r} / np.array({list(prior.variances)!r})",
        "mine = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ target)",
        'profiles = items["profile"].to_numpy()',
        f'scores = {facts.mean!r} + items["bias"].to_numpy() + mine[0] + profiles @ mine[1:]',
        'best = items["item_id"].gather((-scores).argsort()[:10])',
    ]


def _deviations(facts: Facts) -> list[str]:
    """Return how to compute a predictive deviation, if the tables have what it takes."""
    if facts.residual_variance is None:
        return []
    return [
        "",
        "The variance of a rating about its prediction is",
        f"`{facts.residual_variance!r} + item bias_variance + user bias_variance + "
        "dot(item profile_variance, user profile**2) + dot(item profile**2, user profile_variance) "
        "+ dot(item profile_variance, user profile_variance)`.",
    ]


def card_text(certificate: Certificate, facts: Facts, files: list[str]) -> str:
    """Return the text of card.md; everything in it is public."""
    lines = [
        "# A recommender released with Taciturn",
        "",
        f"Trained by `{facts.solver}` (Taciturn {facts.taciturn}) on ratings from "
        f"{facts.scale.low:g} to {facts.scale.high:g}. {_MEANING[certificate.status]}",
        "",
        "| file | holds |",
        "|---|---|",
    ]
    if ITEMS in files:
        lines.append(
            f"| `{ITEMS}` | {facts.items:,} item profiles of length {facts.factors}, with biases |"
        )
    if USERS in files:
        names = "random pseudonyms" if facts.user_ids == "pseudonyms" else "their ids"
        lines.append(
            f"| `{USERS}` | {facts.users:,} user profiles of length {facts.factors}, with biases, "
            f"under {names} |"
        )
    lines += [
        "| `certificate.json` | the guarantee and the ledger that it is computed from |",
        "| `SHA256SUMS` | checksums; `sha256sum -c SHA256SUMS` checks them |",
        "",
        _CONTENTS[certificate.status],
        "",
        "## The guarantee",
        "",
        "```text",
        certificate.to_text().rstrip(),
        "```",
        "",
        "`taciturn verify DIR` recomputes it from the ledger and checks every file.",
        "",
        "## Use",
        "",
        "With Taciturn:",
        "",
        "```sh",
        f"taciturn recommend DIR {_whom(facts, files)} -k 10",
        "```",
        "",
        "Without: the predicted rating of an item by a user is",
        f"`{facts.mean!r} + item bias + user bias + dot(item profile, user profile)`.",
        *_deviations(facts),
        "",
        "```python",
        *(["import numpy as np"] if facts.prior is not None else []),
        "import polars as pl",
        "",
    ]
    if ITEMS in files and USERS in files:
        lines += [
            f'items, users = pl.read_parquet("{ITEMS}"), pl.read_parquet("{USERS}")',
            "user = users.row(0, named=True)",
            'profiles = items["profile"].to_numpy()',
            f'scores = {facts.mean!r} + items["bias"].to_numpy() + user["bias"]'
            ' + profiles @ user["profile"]',
            'best = items["item_id"].gather((-scores).argsort()[:10])',
        ]
    elif USERS in files:
        lines += [
            f'users = pl.read_parquet("{USERS}")  # multiply with item profiles of your own',
        ]
    elif facts.prior is not None:
        lines += _folding(facts, facts.prior)
    else:
        lines += [f'items = pl.read_parquet("{ITEMS}")  # multiply with user profiles']
    return "\n".join([*lines, "```", ""])
