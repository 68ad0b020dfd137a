"""Card of a release: its contents, its guarantee and how to use it, as Markdown."""

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Status
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel
from taciturn.model.profiles import Prior
from taciturn.release.bundle import ITEMS, USERS
from taciturn.release.facts import Facts

_MEANING = {
    Status.PROVEN: "Its guarantee is proven.",
    Status.CLAIMED: "**Its guarantee is a claim without a valid proof: do not rely on it.**",
    Status.VOID: "**It has no guarantee: anyone can reproduce its noise.**",
    Status.NONE: "**It is not private and has no guarantee.**",
}

_CONTENTS = {
    Status.PROVEN: "These files contain no ratings. Everything in them that depends on protected "
    "data has noise.",
    Status.CLAIMED: "These files contain no ratings, but they depend on ratings in ways for which "
    "no bound is known.",
    Status.VOID: "These files contain no ratings, but anyone who reproduces the noise can "
    "subtract it.",
    Status.NONE: "These files contain no ratings, but the profiles are exact functions of them.",
}


def _user_options(model: FactorModel) -> str:
    """Options of `taciturn recommend` that select the user."""
    if model.prior is not None:
        return "--ratings OWN-RATINGS.csv"
    has_items = model.items is not None
    return "--user ID" if has_items else "--user ID --items YOUR-ITEMS.parquet"


def _folding(model: FactorModel, prior: Prior) -> list[str]:
    """Code that users run on their own devices to fold in their own ratings."""
    return [
        f'items = pl.read_parquet("{ITEMS}")',
        'mine = pl.DataFrame({"item_id": [...], "rating": [...]})  # your ratings, kept private',
        'rated = mine.join(items, on="item_id")',
        'design = np.column_stack([np.ones(len(rated)), np.vstack(rated["profile"].to_numpy())])',
        f'target = rated["rating"].to_numpy() - {model.mean!r} - rated["bias"].to_numpy()',
        f"ridge = {prior.residual_variance!r} / np.array({list(prior.variances)!r})",
        "mine = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ target)",
        'profiles = np.vstack(items["profile"].to_numpy())',
        f'scores = {model.mean!r} + items["bias"].to_numpy() + mine[0] + profiles @ mine[1:]',
        'best = items["item_id"].gather((-scores).argsort()[:10])',
    ]


def _standard_deviations(model: FactorModel) -> list[str]:
    """Formula of the predictive variance, if the tables contain variances."""
    if model.residual_variance is None:
        return []
    return [
        "",
        "The predictive variance of a rating is",
        f"`{model.residual_variance!r} + item bias_variance + user bias_variance + "
        "dot(item profile_variance, user profile**2) + dot(item profile**2, user profile_variance) "
        "+ dot(item profile_variance, user profile_variance)`.",
    ]


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
    factors = model.factor_count
    coefficients = f"a bias and {factors} factors" if factors else "a bias and no factors"
    lines = [
        "# Recommender released with Taciturn",
        "",
        f"Trained on {facts.date} (UTC) with `{facts.solver}` (Taciturn {facts.taciturn}), on "
        f"ratings from {model.scale.low:g} to {model.scale.high:g}. {_MEANING[certificate.status]}",
        *_configured(facts),
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
        "| `certificate.json` | the guarantee, and the ledger from which it is computed |",
        "| `SHA256SUMS` | checksums; `sha256sum -c SHA256SUMS` checks them |",
        "",
        _CONTENTS[certificate.status],
        *([] if model.is_personalised else ["", f"This release is {NOT_PERSONALISED}."]),
        "",
        "## Guarantee",
        "",
        "```text",
        certificate.to_text().rstrip(),
        "```",
        "",
        "`taciturn verify DIR` recomputes the guarantee from the ledger and checks every file.",
        "",
        "## Use",
        "",
        "With Taciturn:",
        "",
        "```sh",
        f"taciturn recommend DIR {_user_options(model)} -k 10",
        "```",
        "",
        "Without Taciturn, the predicted rating of an item by a user is",
        f"`{model.mean!r} + item bias + user bias + dot(item profile, user profile)`.",
        *_standard_deviations(model),
        "",
        "```python",
        *(["import numpy as np"] if model.items is not None else []),
        "import polars as pl",
        "",
    ]
    if model.items is not None and model.users is not None:
        lines += [
            f'items, users = pl.read_parquet("{ITEMS}"), pl.read_parquet("{USERS}")',
            "user = users.row(0, named=True)",
            'profiles = np.vstack(items["profile"].to_numpy())',
            f'scores = {model.mean!r} + items["bias"].to_numpy() + user["bias"]'
            ' + profiles @ user["profile"]',
            'best = items["item_id"].gather((-scores).argsort()[:10])',
        ]
    elif model.users is not None:
        lines += [
            f'users = pl.read_parquet("{USERS}")  # multiply by your own item profiles',
        ]
    elif model.prior is not None:
        lines += _folding(model, model.prior)
    else:
        lines += [f'items = pl.read_parquet("{ITEMS}")  # multiply by user profiles']
    return "\n".join([*lines, "```", ""])
