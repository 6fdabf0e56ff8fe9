"""Count the votes of the export, as one would without contone: votes.csv, and shares.csv with one added per label."""

import polars as pl

import contone

problem = contone.read_table("export.json")
counts = problem.Y.with_columns(item=pl.Series(problem.item_names)).group_by("item").sum().sort("item")
counts.write_csv("votes.csv")
labels = problem.label_names
total = pl.sum_horizontal(labels) + len(labels)
counts.select("item", *(((pl.col(n) + 1) / total).alias(f"{n}_degree") for n in labels)).write_csv("shares.csv")
