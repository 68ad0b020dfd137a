"""Random events and ledgers."""

from hypothesis import strategies as st

from tacit.privacy.events import Event, ExactRelease, GaussianRelease, Noise, Rows
from tacit.privacy.ledger import Ledger
from tacit.privacy.units import Unit

lines = st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable())
scales = st.floats(1e-3, 1e3)


def gaussian_releases(unit: Unit) -> st.SearchStrategy[GaussianRelease]:
    return st.builds(
        GaussianRelease,
        purpose=lines,
        unit=st.just(unit),
        sensitivity=scales,
        noise_scale=scales,
        rows=st.sampled_from(Rows),
        noise=st.sampled_from(Noise),
        coordinates=st.integers(1, 1000),
        sampler_error=st.just(0.0) | st.floats(1e-15, 1e-9),
        sampler_tail=st.just(0.0) | st.floats(1e-60, 1e-30),
        flaw=st.none() | lines,
    )


def events(unit: Unit) -> st.SearchStrategy[Event]:
    exact = st.builds(ExactRelease, purpose=lines, unit=st.just(unit))
    return gaussian_releases(unit) | exact


ledgers = st.sampled_from(Unit).flatmap(
    lambda unit: st.lists(events(unit), min_size=1, max_size=8).map(Ledger)
)
