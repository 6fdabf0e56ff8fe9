"""results -> a page: tables, ranks, pictures and provenance of any comparison."""
