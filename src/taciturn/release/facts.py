"""Public facts of a release other than its guarantee, as stored in certificate.json."""

import re
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from typing import Any

from taciturn._internal import validate
from taciturn._version import __version__
from taciturn.errors import InvalidDocument, InvalidInput
from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest
from taciturn.model.profiles import Prior
from taciturn.release.about import About
from taciturn.scale import Scale

NUMBER_MAX = 1e15
"""Largest number allowed in a release: sums of products of them stay finite in 32 bits."""

WIDTH_MAX = 2**13
"""Maximum number of entries of an interest vector."""

_ORIGIN = ("solver", "settings", "taciturn", "date", "user_ids")
_COUNTS = ("factors", "users", "items")
_REQUIRED = {*_ORIGIN, *_COUNTS, "scale", "mean"}
_OPTIONAL = {
    "residual_variance",
    "prior",
    "interest",
    "configuration",
    "ids_from_ratings",
    "about",
}
_ID_LISTS: list[list[str]] = [[], ["users"], ["items"], ["users", "items"]]

_OPTION = "[a-z0-9]+(-[a-z0-9]+)*"
_PART = "(0|[1-9][0-9]{0,3})"
_VERSION = rf"{_PART}\.{_PART}\.{_PART}((?:a|b|rc|\.dev)[0-9]{{1,4}})?"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Configuration file of a training.

    `sha256` is of the bytes of the file. `command_line` names further options, which were given on
    the command line, in alphabetical order.
    """

    sha256: str
    command_line: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON document."""
        return {"sha256": self.sha256, "command_line": list(self.command_line)}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Origin of a release: solver, its settings, version of Taciturn, date and kind of user ids.

    `date` is the day (UTC) on which the training began. `user_ids` is `ids`, `pseudonyms`, or
    `none` for a release without users. `configuration` is None unless the training had a
    configuration file. `ids_from_ratings` names the id lists (`users`, `items`) that count as
    public under the privacy unit and were taken from the ratings; None if the release does not say.
    `about` holds texts of the owner.
    """

    solver: str
    settings: dict[str, Any]
    taciturn: str
    date: date
    user_ids: str
    configuration: Configuration | None = None
    ids_from_ratings: tuple[str, ...] | None = None
    about: About = field(default_factory=About)


def from_ratings(roles: tuple[str, ...]) -> str:
    """Clause about id lists that were taken from the ratings."""
    names = " and ".join(roles)
    return (
        f"the list of {names} was taken from the ratings and counts as public: which {names} have "
        "ratings is not protected"
    )


def model_to_dict(model: FactorModel) -> dict[str, Any]:
    """Numbers of a model other than its profiles, as JSON types; missing ones are omitted."""
    facts: dict[str, Any] = {"scale": asdict(model.scale), "mean": model.mean}
    if model.residual_variance is not None:
        facts["residual_variance"] = model.residual_variance
    if model.prior is not None:
        variances = list(model.prior.variances)
        facts["prior"] = asdict(model.prior) | {"variances": variances}
    if model.interest is not None:
        facts["interest"] = asdict(model.interest) | {"columns": model.interest_count}
    return facts


def facts_to_dict(facts: Facts, model: FactorModel) -> dict[str, Any]:
    """Facts of a release for certificate.json: origin, numbers and table sizes."""
    sizes = {
        "factors": model.factor_count,
        "users": 0 if model.users is None else len(model.users),
        "items": 0 if model.items is None else len(model.items),
    }
    origin = {name: getattr(facts, name) for name in _ORIGIN} | {"date": facts.date.isoformat()}
    if facts.configuration is not None:
        origin["configuration"] = facts.configuration.to_dict()
    if facts.ids_from_ratings is not None:
        origin["ids_from_ratings"] = list(facts.ids_from_ratings)
    if about := facts.about.given():
        origin["about"] = about
    return origin | model_to_dict(model) | sizes


def facts_from_dict(document: object) -> tuple[Facts, FactorModel, dict[str, int]]:
    """Facts, a model without its profiles, and the stated sizes of its tables.

    These are numbers of factors, users and items, and of the entries of an interest vector. Raises
    `InvalidDocument` unless every field is present and valid.
    """
    damaged = InvalidDocument(
        "the release's facts in certificate.json have missing, unknown or invalid fields"
    )
    if not isinstance(document, dict):
        raise damaged
    if document.keys() - _OPTIONAL != _REQUIRED:
        raise damaged
    scale, counts = document["scale"], {name: document[name] for name in _COUNTS}
    if not (isinstance(scale, dict) and scale.keys() == {"low", "high", "step"}):
        raise damaged
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in counts.values()):
        raise damaged
    if not all(0 <= each <= validate.COUNT_MAX for each in counts.values()):
        raise damaged
    if document.get("ids_from_ratings", []) not in _ID_LISTS:
        raise damaged
    if document["user_ids"] not in ("ids", "pseudonyms", "none"):
        raise damaged
    if not isinstance(document["settings"], dict):
        raise damaged
    check_taciturn(document["taciturn"])
    variance: float | None = None
    prior: Prior | None = None
    about = About()
    try:
        if not isinstance(document["date"], str):
            raise damaged
        day = validate.day("date", document["date"])
        if "residual_variance" in document:
            stated = document["residual_variance"]
            variance = _bounded(validate.positive("residual_variance", stated, "-"))
        if "about" in document:
            about = About.from_dict(document["about"])
        if "prior" in document:
            if counts["users"]:
                raise damaged
            prior = _prior(document["prior"], counts["factors"])
        interest, counts["interest"] = _interest(document)
        model = FactorModel(
            scale=Scale(**scale),
            mean=_bounded(validate.finite("mean", document["mean"], "it is a number")),
            users=None,
            items=None,
            residual_variance=variance,
            prior=prior,
            interest=interest,
        )
    except InvalidInput:
        raise damaged from None
    origin = {name: document[name] for name in _ORIGIN} | {"date": day, "about": about}
    if "ids_from_ratings" in document:
        origin["ids_from_ratings"] = tuple(document["ids_from_ratings"])
    if "configuration" in document:
        origin["configuration"] = _configuration(document["configuration"])
    return Facts(**origin), model, counts


def _configuration(document: object) -> Configuration:
    """Checked facts about a configuration file."""
    damaged = InvalidDocument(
        "the release's configuration in certificate.json has missing, unknown or invalid fields"
    )
    if not (isinstance(document, dict) and document.keys() == {"sha256", "command_line"}):
        raise damaged
    digest, names = document["sha256"], document["command_line"]
    if not (isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)):
        raise damaged
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise damaged
    if names != sorted(set(names)) or not all(re.fullmatch(_OPTION, name) for name in names):
        raise damaged
    return Configuration(sha256=digest, command_line=tuple(names))


def check_taciturn(version: object) -> str:
    """Version of Taciturn named in a release; raises if it is invalid or newer than this one."""
    found, own = (
        re.fullmatch(_VERSION, each) if isinstance(each, str) else None
        for each in (version, __version__)
    )
    if found is None or own is None or not isinstance(version, str):
        raise InvalidDocument("the release does not name a version of Taciturn, such as 0.2.0")
    named, here = (tuple(int(part) for part in each.groups()[:3]) for each in (found, own))
    if named > here:
        raise InvalidDocument(
            f"the release was written by Taciturn {version}, and this is {__version__}; check it "
            f"with version {version} or newer"
        )
    return version


def _prior(document: object, factors: int) -> Prior:
    """Checked prior of a user's profile."""
    damaged = InvalidDocument(
        "the release's prior in certificate.json has missing, unknown or invalid fields"
    )
    if not (isinstance(document, dict) and document.keys() == {"residual_variance", "variances"}):
        raise damaged
    variances = document["variances"]
    if not (isinstance(variances, list) and len(variances) == 1 + factors):
        raise damaged
    residual, *rest = (
        _bounded(validate.positive("prior", each, "it has variances"))
        for each in (document["residual_variance"], *variances)
    )
    return Prior(residual_variance=residual, variances=tuple(rest))


def _interest(facts: dict[str, Any]) -> tuple[Interest | None, int]:
    """Checked parameters of interest, and the number of entries of a vector; 0 without interest."""
    if "interest" not in facts:
        return None, 0
    damaged = InvalidDocument(
        "the release's interest in certificate.json has missing, unknown or invalid fields"
    )
    document, names = facts["interest"], {field.name for field in fields(Interest)}
    if not (isinstance(document, dict) and document.keys() == names | {"columns"}):
        raise damaged
    columns = document["columns"]
    if isinstance(columns, bool) or not (isinstance(columns, int) and 1 <= columns <= WIDTH_MAX):
        raise damaged
    numbers = {name: _bounded(validate.positive(name, document[name], "-")) for name in names}
    return Interest(**numbers), columns


def _bounded(number: float) -> float:
    if abs(number) > NUMBER_MAX:
        raise InvalidDocument("the release's facts contain a number outside the allowed range")
    return number
