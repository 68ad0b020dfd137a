"""How ratings are read."""

from taciturn.errors import InvalidParameter


def parse_columns(text: str) -> dict[str, str]:
    """Map written as user=NAME,item=NAME,rating=NAME[,timestamp=NAME]."""
    pairs = [part.partition("=") for part in text.split(",")]
    chosen = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(name for name in chosen.values()) or len(chosen) != len(pairs):
        raise InvalidParameter(f"columns are written user=NAME,item=NAME,rating=NAME, got {text!r}")
    return chosen
