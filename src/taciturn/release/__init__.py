"""Published bundle: profiles, and the certificate of the training that produced them."""
