"""Certificates: the guarantee of a ledger, as JSON and as plain text.

Every number is computed from the ledger and rounded towards privacy. Reading a certificate
recomputes it from the ledger it carries. Nothing here reads private data.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn._internal import strict_json, validate
from taciturn._internal.html import summary
from taciturn._internal.spelling import in_document
from taciturn.accounting import gaussian, text
from taciturn.accounting.events import Event
from taciturn.accounting.journal import read_journal
from taciturn.accounting.ledger import FORMAT as LEDGER_FORMAT
from taciturn.accounting.ledger import Ledger, Status, check_version
from taciturn.accounting.public_inputs import PublicInput
from taciturn.accounting.units import Unit
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter

FORMAT = "taciturn-certificate"
VERSION = 1

CURVE_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
GROUP_SIZES = (1, 10, 100)

MU_CERTIFIED_MAX = 1e6
"""Largest μ that a certificate is issued for; it leaves room for the group lines."""

TOLERANCE = 1e-9
"""Relative difference allowed between a certificate and its recomputation on another machine."""


@dataclass(frozen=True, kw_only=True)
class GroupLine:
    """Guarantee for a group of ratings of one user (under `user`: for a group of users).

    `epsilon` is None if the sampler's error has no proven bound, far beyond any useful μ.
    """

    size: int
    mu: float
    epsilon: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate:
    """Guarantee of a ledger at `delta`; build one with `Certificate.from_ledger`.

    `epsilon`, `mu`, `curve` (pairs of δ and ε), `attacker` (pairs of false-positive rate and
    maximum true-positive rate) and `group` are None or empty if the status is `none`.
    `public_inputs` names data that was used and counts as public.
    """

    run: str
    events: tuple[Event, ...]
    status: Status
    reasons: tuple[str, ...]
    unit: Unit
    delta: float
    epsilon: float | None
    mu: float | None
    curve: tuple[tuple[float, float], ...]
    attacker: tuple[tuple[float, float], ...]
    group: tuple[GroupLine, ...]
    public_inputs: tuple[PublicInput, ...] = ()

    @classmethod
    def from_ledger(cls, ledger: Ledger, delta: float) -> "Certificate":
        """Compute the certificate of a ledger that has at least one event."""
        validate.instance("ledger", ledger, Ledger, "a fit has one: fit.ledger")
        delta, unit, status = gaussian.check_stated_delta(delta), ledger.unit, ledger.status
        mu: float | None = None
        epsilon: float | None = None
        curve: tuple[tuple[float, float], ...] = ()
        attacker: tuple[tuple[float, float], ...] = ()
        group: tuple[GroupLine, ...] = ()
        if status is not Status.NONE:
            spend = ledger.spend()
            mu = spend.mu
            if mu > MU_CERTIFIED_MAX:
                raise InvalidParameter(
                    f"the ledger composes to mu = {mu:g}, which protects nothing; certificates "
                    f"are issued up to {MU_CERTIFIED_MAX:g}; add noise, or release it as not "
                    "private"
                )
            epsilon = spend.epsilon_upper(delta)
            curve = tuple((each, spend.epsilon_upper(each)) for each in CURVE_DELTAS)
            attacker = tuple(
                (rate, spend.true_positive_rate_upper(rate)) for rate in FALSE_POSITIVE_RATES
            )
            group = tuple(_group_line(ledger, size, delta) for size in GROUP_SIZES)
        return cls(
            run=ledger.run,
            events=ledger.events,
            status=status,
            reasons=ledger.reasons,
            unit=unit,
            delta=delta,
            epsilon=epsilon,
            mu=mu,
            curve=curve,
            attacker=attacker,
            group=group,
            public_inputs=ledger.public_inputs,
        )

    @property
    def ledger(self) -> Ledger:
        """Copy of the ledger that the certificate was computed from."""
        return Ledger(self.events, run=self.run, public_inputs=self.public_inputs)

    @property
    def not_protected(self) -> list[str]:
        """Sentences that describe what the guarantee does not protect."""
        patterns = [text.PATTERN.format(purpose=purpose) for purpose in self.ledger.patterns]
        own = [text.OWN_PROFILE] if self.ledger.is_served_by_fold_in else []
        inputs = [each.sentence for each in self.public_inputs]
        return [*self.unit.facts.not_protected, *own, *patterns, *inputs]

    @property
    def serving(self) -> str | None:
        """Statement of joint privacy if users fold in beside the release; None otherwise."""
        if self.mu is None or not self.ledger.is_served_by_fold_in:
            return None
        return text.FOLD_IN.format(mu=rounded_up(self.mu, 6))

    def to_dict(self) -> dict[str, Any]:
        """Certificate as JSON types; `serving` only if users fold in beside the release."""
        facts = self.unit.facts
        return {
            "format": FORMAT,
            "version": VERSION,
            "status": self.status,
            "reasons": list(self.reasons),
            "statement": {
                "unit": self.unit,
                "relation": facts.relation,
                "protects": facts.protects if self.status is Status.PROVEN else None,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "mu": self.mu,
            }
            | ({} if self.serving is None else {"serving": self.serving}),
            "curve": [{"delta": delta, "epsilon": epsilon} for delta, epsilon in self.curve],
            "attacker": [
                {"false_positive_rate": false, "true_positive_rate": true}
                for false, true in self.attacker
            ],
            "group": [
                {"size": line.size, "of": facts.member, "mu": line.mu, "epsilon": line.epsilon}
                for line in self.group
            ],
            "not_protected": self.not_protected,
            "notes": list(text.NOTES),
            "checking": {"proves": text.PROVES, "does_not_prove": text.DOES_NOT_PROVE},
            "ledger": self.ledger.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: object) -> "Certificate":
        """Recompute a certificate from the ledger in `document` and compare the two.

        Raises `CheckFailed` unless every number, within `TOLERANCE`, and every word of the
        document follows from its ledger.
        """
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InvalidDocument(f"a certificate must be an object whose format is {FORMAT!r}")
        check_version("certificates", document.get("version"), VERSION)
        statement = document.get("statement")
        if not isinstance(statement, dict) or "delta" not in statement:
            raise InvalidDocument("a certificate must have a statement with a delta")
        ledger = Ledger.from_dict(document.get("ledger"))
        try:
            with in_document():
                certificate = cls.from_ledger(ledger, statement["delta"])
        except InvalidParameter as error:
            raise InvalidDocument(f"a certificate is not valid: {error}") from None
        _compare("certificate", document, certificate.to_dict())
        return certificate

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON to a new file."""
        strict_json.write(validate.path("path", path), self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Read and recompute a certificate file."""
        return cls.from_dict(strict_json.read(validate.path("path", path)))

    def __repr__(self) -> str:
        # Without the events, of which there may be hundreds.
        facts = [f"unit={self.unit.value!r}"]
        if self.epsilon is not None and self.mu is not None:
            facts.append(f"epsilon={rounded_up(self.epsilon)}, delta={self.delta!r}")
            facts.append(f"mu={rounded_up(self.mu, 6)}")
        facts.append(f"events={len(self.events)}")
        return f"Certificate(status={self.status.value!r}, {', '.join(facts)})"

    def _repr_html_(self) -> str:
        title = text.TITLE.format(status=self.status)
        return summary(title, self.facts(), [text.STATUS[self.status]])

    def facts(self) -> list[tuple[str, str]]:
        """Short version of the certificate: names and facts, as text."""
        facts = [("reason", reason) for reason in self.reasons]
        protects = f"{self.unit.facts.protects} (unit {self.unit})"
        facts.append((text.HEADING[self.status].lower(), protects))
        if self.epsilon is not None and self.mu is not None:
            statement = text.STATEMENT.format(
                epsilon=rounded_up(self.epsilon), delta=self.delta, mu=rounded_up(self.mu, 6)
            )
            facts.append(("guarantee" if self.status is Status.PROVEN else "numbers", statement))
            facts += [("attacker", _attacker_text(false, true)) for false, true in self.attacker]
            groups = text.GROUP[self.unit].rstrip(":")
            facts += [("groups", f"{groups}, {_group_text(line)}") for line in self.group[1:2]]
            facts += [("does not protect", sentence) for sentence in self.not_protected]
        return facts

    def to_text(self) -> str:
        """Certificate as plain text."""
        return "\n".join(_lines(self)) + "\n"


def read_ledger(path: str | Path) -> Ledger:
    """Ledger in a release folder, run folder, certificate file or ledger file.

    A certificate is recomputed from its ledger and compared.
    """
    path = Path(path)
    try:
        file = path / "certificate.json" if path.is_dir() else path
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a valid path"
        raise InvalidDocument(f"cannot read {validate.shown(str(path))}: {reason}") from None
    if path.is_dir() and (path / "ledger.jsonl").is_file():
        return read_journal(path / "ledger.jsonl")
    if path.suffix == ".jsonl":
        return read_journal(path)
    document = strict_json.read(file)
    if isinstance(document, dict) and "certificate" in document:
        document = document["certificate"]
    kind = document.get("format") if isinstance(document, dict) else None
    if kind not in (FORMAT, LEDGER_FORMAT):
        raise InvalidDocument(f"{file} is neither a Taciturn certificate nor a Taciturn ledger")
    try:
        if kind == FORMAT:
            return Certificate.from_dict(document).ledger
        return Ledger.from_dict(document)
    except (InvalidDocument, CheckFailed) as error:
        raise type(error)(f"{file}: {error}") from None


def _group_line(ledger: Ledger, size: int, delta: float) -> GroupLine:
    spend = ledger.spend(group=size)
    epsilon = spend.epsilon_upper(delta)
    return GroupLine(size=size, mu=spend.mu, epsilon=epsilon if math.isfinite(epsilon) else None)


def _compare(where: str, stated: Any, computed: Any) -> None:
    """Raise unless `stated` equals `computed`, with numbers compared within `TOLERANCE`."""
    parts: list[tuple[str, Any, Any]] = []
    if isinstance(computed, dict):
        matches = isinstance(stated, dict) and stated.keys() == computed.keys()
        parts = [(key, key, value) for key, value in computed.items()]
    elif isinstance(computed, list):
        matches = isinstance(stated, list) and len(stated) == len(computed)
        parts = [(f"{where}[{index}]", index, value) for index, value in enumerate(computed)]
    elif isinstance(computed, float):
        is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
        # An integer too large for a float is not close to one.
        matches = (
            is_number and abs(stated) < 1e300 and math.isclose(stated, computed, rel_tol=TOLERANCE)
        )
    else:
        matches = not isinstance(stated, bool) and stated == computed
    if not matches:
        expected = f"be {json.dumps(computed)}" if not parts else "have other entries"
        raise CheckFailed(
            f"the certificate does not follow from its ledger: {where} should {expected}"
        )
    for part, key, value in parts:
        _compare(part, stated[key], value)


def delta_warning(delta: float, users: int) -> str | None:
    """Warning about a δ of at least 1/users; None for a smaller one."""
    if delta * users < 1:
        return None
    return (
        f"delta = {delta:g} is not below 1/{users:,}, one over the number of users: it would allow "
        "a mechanism that publishes all ratings of one user; use a smaller delta"
    )


def rounded_up(value: float, digits: int = 4) -> str:
    """Decimal text of `value` with `digits` decimals, rounded up."""
    scale = 10.0**digits
    return f"{math.ceil(value * scale) / scale:.{digits}f}"


def _group_text(line: GroupLine) -> str:
    mu = rounded_up(line.mu, 6)
    if line.epsilon is None:
        return text.GROUP_LINE_UNBOUNDED.format(size=line.size, mu=mu)
    return text.GROUP_LINE.format(size=line.size, mu=mu, epsilon=rounded_up(line.epsilon))


def _attacker_text(false: float, true: float) -> str:
    return text.ATTACKER_LINE.format(false=f"{100 * false:g}", true=rounded_up(100 * true, 2))


def _lines(certificate: Certificate) -> list[str]:
    unit, status = certificate.unit, certificate.status
    heading = text.HEADING[status]
    lines = [
        text.TITLE.format(status=status),
        text.STATUS[status],
        *(f"  - {reason}" for reason in certificate.reasons),
        "",
        text.PROTECTED.format(heading=heading, protects=unit.facts.protects, unit=unit),
        text.NEIGHBOURS.format(relation=unit.facts.relation),
    ]
    if certificate.epsilon is not None and certificate.mu is not None:
        lines += [
            text.STATEMENT.format(
                epsilon=rounded_up(certificate.epsilon),
                delta=certificate.delta,
                mu=rounded_up(certificate.mu, 6),
            ),
            *([certificate.serving] if certificate.serving else []),
            "",
            text.ATTACKER,
            *(f"  {_attacker_text(false, true)}" for false, true in certificate.attacker),
            "",
            text.CURVE,
            *(
                f"  {text.CURVE_LINE.format(delta=delta, epsilon=rounded_up(epsilon))}"
                for delta, epsilon in certificate.curve
            ),
            "",
            text.GROUP[unit],
            *(f"  {_group_text(line)}" for line in certificate.group),
        ]
    lines += [
        "",
        text.NOT_PROTECTED.format(unit=unit),
        *(f"  - {sentence}" for sentence in certificate.not_protected),
        "",
        *text.NOTES,
        "",
        text.PROVES,
        text.DOES_NOT_PROVE,
    ]
    return lines
