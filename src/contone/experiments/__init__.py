"""specs -> results: the experiments."""
