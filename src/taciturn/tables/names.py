"""Roles of columns in tables of users, items and ratings.

Case, spaces, hyphens and underscores in names do not matter. Names cover MovieLens, Netflix,
Book-Crossing, Amazon, Yelp and common Kaggle sets.
"""

from taciturn.tables.columns import Role

USER = Role(
    name="user",
    aliases=(
        *("user_id", "user", "customer_id", "uid", "u", "reviewer_id", "member_id", "reader_id"),
        *("client_id", "account_id", "person_id", "customer", "reviewer", "member", "username"),
    ),
)
ITEM = Role(
    name="item",
    aliases=(
        *("item_id", "item", "movie_id", "movie", "anime_id", "book_id", "product_id", "track_id"),
        *("song_id", "isbn", "asin", "iid", "i", "film_id", "film", "anime", "book", "product"),
        *("track", "song", "artist_id", "artist", "album_id", "album", "game_id", "game", "app_id"),
        *("business_id", "recipe_id", "article_id", "show_id", "sku", "mid", "parent_asin"),
    ),
)
RATING = Role(
    name="rating",
    aliases=(
        *("rating", "ratings", "score", "stars", "value", "book_rating", "overall", "r"),
        *("star_rating", "user_rating", "movie_rating", "item_rating", "review_score", "my_score"),
        *("user_score", "star", "grade"),
    ),
)
TIMESTAMP = Role(
    name="timestamp",
    aliases=(
        *("timestamp", "time", "date", "ts", "unix_review_time", "datetime", "rated_at"),
        *("created_at", "review_date", "rating_date", "rating_timestamp"),
    ),
    is_required=False,
)
TITLE = Role(name="title", aliases=("title", "name", "titles"))

ID = "id"
"""Name of the id column in a table of only users or only items."""
