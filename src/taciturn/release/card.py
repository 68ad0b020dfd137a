"""The card of a release: what it is, what it guarantees and how to use it, for people."""

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Status
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Prior
from taciturn.release.bundle import ITEMS, USERS
from taciturn.release.facts import Facts

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


def _user_options(model: FactorModel) -> str:
    """Options that choose the user to recommend to."""
    if model.prior is not None:
        return "--ratings OWN-RATINGS.csv"
    has_items = model.items is not None
    return "--user ID" if has_items else "--user ID --items YOUR-ITEMS.parquet"


def _folding(model: FactorModel, prior: Prior) -> list[str]:
    """Code with which users find their own profiles, on their own side, from their own ratings."""
    return [
        f'items = pl.read_parquet("{ITEMS}")',
        'mine = pl.DataFrame({"item_id": [...], "rating": [...]})  # yours, kept private',
        'rated = mine.join(items, on="item_id")',
        'design = np.column_stack([np.ones(len(rated)), rated["profile"].to_numpy()])',
        f'target = rated["rating"].to_numpy() - {model.mean!r} - rated["bias"].to_numpy()',
        f"ridge = {prior.residual_variance!r} / np.array({list(prior.variances)!r})",
        "mine = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ target)",
        'profiles = items["profile"].to_numpy()',
        f'scores = {model.mean!r} + items["bias"].to_numpy() + mine[0] + profiles @ mine[1:]',
        'best = items["item_id"].gather((-scores).argsort()[:10])',
    ]


def _deviations(model: FactorModel) -> list[str]:
    """Formula of the predictive variance, if the tables have variances."""
    if model.residual_variance is None:
        return []
    return [
        "",
        "The variance of a rating about its prediction is",
        f"`{model.residual_variance!r} + item bias_variance + user bias_variance + "
        "dot(item profile_variance, user profile**2) + dot(item profile**2, user profile_variance) "
        "+ dot(item profile_variance, user profile_variance)`.",
    ]


def card_text(certificate: Certificate, facts: Facts, model: FactorModel) -> str:
    """Text of card.md; everything in it is public."""
    length = model.factor_count
    lines = [
        "# A recommender released with Taciturn",
        "",
        f"Trained by `{facts.solver}` (Taciturn {facts.taciturn}) on ratings from "
        f"{model.scale.low:g} to {model.scale.high:g}. {_MEANING[certificate.status]}",
        "",
        "| file | holds |",
        "|---|---|",
    ]
    if model.items is not None:
        lines.append(
            f"| `{ITEMS}` | {len(model.items):,} item profiles of length {length}, with biases |"
        )
    if model.users is not None:
        names = "random pseudonyms" if facts.user_ids == "pseudonyms" else "their ids"
        lines.append(
            f"| `{USERS}` | {len(model.users):,} user profiles of length {length}, with biases, "
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
        f"taciturn recommend DIR {_user_options(model)} -k 10",
        "```",
        "",
        "Without: the predicted rating of an item by a user is",
        f"`{model.mean!r} + item bias + user bias + dot(item profile, user profile)`.",
        *_deviations(model),
        "",
        "```python",
        *(["import numpy as np"] if model.prior is not None else []),
        "import polars as pl",
        "",
    ]
    if model.items is not None and model.users is not None:
        lines += [
            f'items, users = pl.read_parquet("{ITEMS}"), pl.read_parquet("{USERS}")',
            "user = users.row(0, named=True)",
            'profiles = items["profile"].to_numpy()',
            f'scores = {model.mean!r} + items["bias"].to_numpy() + user["bias"]'
            ' + profiles @ user["profile"]',
            'best = items["item_id"].gather((-scores).argsort()[:10])',
        ]
    elif model.users is not None:
        lines += [
            f'users = pl.read_parquet("{USERS}")  # multiply with item profiles of your own',
        ]
    elif model.prior is not None:
        lines += _folding(model, model.prior)
    else:
        lines += [f'items = pl.read_parquet("{ITEMS}")  # multiply with user profiles']
    return "\n".join([*lines, "```", ""])
