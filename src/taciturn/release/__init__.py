"""The published bundle: profiles with the certificate of what their training released."""
