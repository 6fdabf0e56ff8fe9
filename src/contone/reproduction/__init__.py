"""One paper, run again: its experiments, its printed tables, its errata, and the report on both."""
