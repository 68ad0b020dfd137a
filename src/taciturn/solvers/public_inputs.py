"""Public inputs of a training: given beside the ratings, or taken from them."""

from taciturn.accounting.public_inputs import InputKind, PublicInput
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings


def ids_from_ratings(ratings: Ratings, unit: Unit) -> tuple[str, ...]:
    """Id lists that count as public under a unit and were taken from the ratings.

    Empty under `value`, where the whole rating pattern is public.
    """
    given = ratings.preparation
    return tuple(
        role
        for role, is_given, is_public in (
            ("users", given.has_user_list, unit is Unit.RATING),
            ("items", given.has_item_list, unit is not Unit.VALUE),
        )
        if is_public and not is_given
    )


def item_features_input(ratings: Ratings) -> tuple[PublicInput, ...]:
    """Item features of the ratings as a ledger names them; empty without features."""
    features = ratings.item_features
    if features is None:
        return ()
    return (
        PublicInput(
            kind=InputKind.ITEM_FEATURES,
            name=features.source,
            sha256=features.digest,
            columns=len(features.columns),
        ),
    )


def public_ratings_input(ratings: Ratings) -> tuple[PublicInput, ...]:
    """Public ratings beside the ratings as a ledger names them; empty without any."""
    public = ratings.public_ratings
    if public is None:
        return ()
    return (
        PublicInput(
            kind=InputKind.PUBLIC_RATINGS,
            name=public.source,
            sha256=public.digest,
            ratings=len(public.ratings),
        ),
    )
