"""A small replacement for the anime set."""

import zipfile
from pathlib import Path

import numpy as np


def write_anime(folder: Path, users: int = 110, items: int = 210) -> Path:
    """Write an archive that passes the paper's filters: all users rate all items."""
    random = np.random.default_rng(0)
    taste, kind = random.normal(size=(users, 2)), random.normal(size=(items, 2))
    scores = np.clip(np.round(6.5 + taste @ kind.T + random.normal(size=(users, items))), 1, 10)
    rows = ["user_id,anime_id,rating"]
    rows += [
        f"{user + 1},{item + 1},{int(scores[user, item])}"
        for user in range(users)
        for item in range(items)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "anime.zip", "w") as bundle:
        bundle.writestr("anime/rating.csv", "\n".join(rows) + "\n")
    return folder
