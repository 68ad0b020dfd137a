"""Random events and ledgers."""

from hypothesis import strategies as st

from taciturn._internal.validate import SOURCE_NAME
from taciturn.accounting.events import (
    Event,
    ExactRelease,
    FoldInServing,
    GaussianRelease,
    Noise,
    PatternRelease,
    Rows,
)
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.public_inputs import InputKind, PublicInput
from taciturn.accounting.units import Unit

printable = st.characters(categories=("L", "N", "P", "S"))
lines = st.text(printable, min_size=1).map(lambda text: f"{text} {text}")
scales = st.floats(1e-2, 1e2)  # ratios for which a certificate is issued
proofs = st.from_regex(r"[a-z]{1,9}\.md#[a-z0-9-]{1,9}", fullmatch=True)
samplers = st.just((0.0, 0.0)) | st.tuples(st.floats(1e-15, 1e-9), st.floats(1e-60, 1e-30))


@st.composite
def gaussian_releases(draw: st.DrawFn, unit: Unit) -> GaussianRelease:
    sensitivity, noise_scale = draw(scales), draw(scales)
    lower = draw(st.lists(st.tuples(lines, st.floats(1e-3, 1)), max_size=3))
    levels = {level: share * sensitivity for level, share in lower} | {"usual": sensitivity}
    error, tail = draw(samplers) if sensitivity < 9 * noise_scale else (0.0, 0.0)
    return GaussianRelease(
        purpose=draw(lines),
        proof=draw(proofs),
        unit=unit,
        sensitivity=sensitivity,
        noise_scale=noise_scale,
        rows=draw(st.sampled_from(Rows)),
        noise=draw(st.sampled_from(Noise)),
        coordinates=draw(st.integers(1, 1000)),
        sampler_error=error,
        sampler_tail=tail,
        flaw=draw(st.none() | lines),
        sensitivity_by_level=draw(st.sampled_from([{}, levels])),
        part=draw(st.none() | lines),
    )


def events(unit: Unit) -> st.SearchStrategy[Event]:
    exact = st.builds(ExactRelease, purpose=lines, unit=st.just(unit))
    pattern = st.builds(PatternRelease, purpose=lines, unit=st.just(unit))
    served = st.builds(FoldInServing, purpose=lines, unit=st.just(unit))
    return gaussian_releases(unit) | exact | pattern | served


inputs = st.lists(
    st.sampled_from(
        [(InputKind.ITEM_FEATURES, "columns"), (InputKind.PUBLIC_RATINGS, "ratings")]
    ).flatmap(
        lambda counted: st.builds(
            PublicInput,
            kind=st.just(counted[0]),
            name=st.from_regex(SOURCE_NAME, fullmatch=True),
            sha256=st.from_regex("[0-9a-f]{64}", fullmatch=True),
            **{counted[1]: st.integers(1, 4096)},
        )
    ),
    max_size=2,
    unique=True,
)

ledgers = st.sampled_from(Unit).flatmap(
    lambda unit: (
        st.lists(events(unit), max_size=8)
        .flatmap(lambda some: gaussian_releases(unit).map(lambda one: [one, *some]))
        .flatmap(lambda some: inputs.map(lambda named: Ledger(some, public_inputs=named)))
    )
)
