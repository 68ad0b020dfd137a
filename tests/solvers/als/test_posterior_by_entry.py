"""Posteriors of rows with fewer ratings than features, solved in the ratings' dimension."""

import numpy as np
import pytest

from taciturn import _core
from taciturn.data.pattern import Pattern
from taciturn.solvers.als.posterior import Design, NoisySums, Posterior, RowPrior, posterior

COUNTERPARTS, UNKNOWN, KNOWN = 60, 5, 2


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> str:
    """Each instruction set of this processor in turn."""
    before, name = _core.instruction_set(), str(request.param)
    _core.use_instruction_set(name)
    request.addfinalizer(lambda: _core.use_instruction_set(before))
    return name


def _pattern(counts: list[int], random: np.random.Generator) -> Pattern:
    """Rows with these numbers of ratings."""
    columns = [np.sort(random.choice(COUNTERPARTS, count, replace=False)) for count in counts]
    return Pattern(
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        columns=np.concatenate(columns).astype(np.int32),
        width=COUNTERPARTS,
    )


def _solved(pattern: Pattern, features: int, random: np.random.Generator) -> Posterior:
    rows = len(pattern)
    return posterior(
        pattern,
        NoisySums(
            features=random.normal(size=(COUNTERPARTS, features)).astype(np.float32),
            sums=random.normal(size=(rows, features)) * 5,
            noise=random.uniform(0.5, 20, features),
        ),
        Design(
            unknown=random.normal(size=(COUNTERPARTS, UNKNOWN)),
            known=random.normal(size=(COUNTERPARTS, KNOWN)),
            shifts=random.normal(size=(rows, KNOWN)),
            errors=random.uniform(0.5, 2, COUNTERPARTS),
        ),
        RowPrior(means=random.normal(size=(rows, UNKNOWN)), covariance=np.eye(UNKNOWN)),
        threads=1,
    )


def _reference(pattern: Pattern, features: int, random: np.random.Generator) -> Posterior:
    """Condition the joint normal distribution of coefficients and noisy sums."""
    rows = len(pattern)
    table = random.normal(size=(COUNTERPARTS, features)).astype(np.float32).astype(float)
    sums, noise = random.normal(size=(rows, features)) * 5, random.uniform(0.5, 20, features)
    unknown = random.normal(size=(COUNTERPARTS, UNKNOWN))
    known = random.normal(size=(COUNTERPARTS, KNOWN))
    shifts, errors = random.normal(size=(rows, KNOWN)), random.uniform(0.5, 2, COUNTERPARTS)
    priors = random.normal(size=(rows, UNKNOWN))
    means, variances, total = [], [], np.zeros((UNKNOWN, UNKNOWN))
    for row in range(rows):
        rated = pattern.columns[pattern.starts[row] : pattern.starts[row + 1]]
        given = table[rated]
        effect = given.T @ unknown[rated]
        whole = given.T @ np.diag(errors[rated]) @ given + np.diag(noise) + effect @ effect.T
        gain = np.linalg.solve(whole, effect).T
        surprise = sums[row] - given.T @ (known[rated] @ shifts[row]) - effect @ priors[row]
        covariance = np.eye(UNKNOWN) - gain @ effect
        means.append(priors[row] + gain @ surprise)
        variances.append(np.diag(covariance))
        total += covariance
    return Posterior(means=np.array(means), variances=np.array(variances), total=total)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("features", [1, 2, 15, 16, 17, 33, 59])
def test_rows_with_any_number_of_ratings_have_the_exact_posterior(features: int) -> None:
    counts = [0, 1, 2, 7, 8, 14, 15, 16, 17, 31, 32, 33, 34, 58, 59, 60]
    pattern = _pattern(counts, np.random.default_rng(features))
    found = _solved(pattern, features, np.random.default_rng(100 + features))
    expected = _reference(pattern, features, np.random.default_rng(100 + features))
    assert np.allclose(found.means, expected.means, rtol=1e-4, atol=1e-4)
    assert np.allclose(found.variances, expected.variances, rtol=1e-4, atol=1e-6)
    assert np.allclose(found.total, expected.total, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("instruction_set")
def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    counts = [3, 40, 0, 12, 20]
    whole = _pattern(counts, np.random.default_rng(1))
    random = np.random.default_rng(2)
    features = random.normal(size=(COUNTERPARTS, 20)).astype(np.float32)
    sums, noise = random.normal(size=(len(counts), 20)), random.uniform(0.5, 20, 20)
    design = Design(
        unknown=random.normal(size=(COUNTERPARTS, UNKNOWN)),
        known=random.normal(size=(COUNTERPARTS, KNOWN)),
        shifts=random.normal(size=(len(counts), KNOWN)),
        errors=random.uniform(0.5, 2, COUNTERPARTS),
    )

    def means(rows: list[int]) -> np.ndarray:
        columns = [whole.columns[whole.starts[row] : whole.starts[row + 1]] for row in rows]
        part = Pattern(
            starts=np.concatenate([[0], np.cumsum([each.size for each in columns])]),
            columns=np.concatenate(columns),
            width=COUNTERPARTS,
        )
        return posterior(
            part,
            NoisySums(features=features, sums=sums[rows], noise=noise),
            Design(
                unknown=design.unknown,
                known=design.known,
                shifts=design.shifts[rows],
                errors=design.errors,
            ),
            RowPrior(means=np.zeros((len(rows), UNKNOWN)), covariance=np.eye(UNKNOWN)),
            threads=1,
        ).means

    together = means([4, 1, 2, 0, 3])
    for place, row in enumerate([4, 1, 2, 0, 3]):
        assert np.array_equal(means([row])[0], together[place])
