"""Factor model that is released and served: profiles, and predictions from them."""
