"""results -> page."""
