"""Pure functions on arrays. Nothing here knows about estimators, files or the user."""
