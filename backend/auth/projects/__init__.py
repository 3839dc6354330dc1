"""Projects, and who may do what in them."""
