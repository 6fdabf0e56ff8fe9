"""Pictures of the paper: one idea per file. Each takes values of the summary and gives `Chart`s."""
