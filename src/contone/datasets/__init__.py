"""Where (X, D) comes from."""
