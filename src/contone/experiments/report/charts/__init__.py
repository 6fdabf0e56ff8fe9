"""Pictures of a comparison: one idea per file. Each takes values of the summary and gives `Chart`s."""
