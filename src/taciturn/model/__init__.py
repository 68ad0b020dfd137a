"""What is published and served: profiles, and predictions from them."""
