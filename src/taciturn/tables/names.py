"""Roles of columns in tables of users, items and ratings.

Names are matched case-insensitively. They cover MovieLens, Netflix and common Kaggle sets.
"""

from taciturn.tables.columns import Role

USER = Role(
    name="user",
    aliases=("user_id", "userid", "user", "customer_id", "customerid", "user id", "uid", "u"),
)
ITEM = Role(
    name="item",
    aliases=(
        *("item_id", "itemid", "item", "movie_id", "movieid", "movie", "anime_id", "book_id"),
        *("product_id", "track_id", "song_id", "isbn", "asin", "iid", "i", "item id"),
    ),
)
RATING = Role(
    name="rating",
    aliases=("rating", "ratings", "score", "stars", "value", "book-rating", "overall", "r"),
)
TIMESTAMP = Role(
    name="timestamp",
    aliases=("timestamp", "time", "date", "ts", "unixreviewtime", "datetime"),
    is_required=False,
)
TITLE = Role(name="title", aliases=("title", "name", "titles"))

ID = "id"
"""Name of the id column in a table of only users or only items."""
