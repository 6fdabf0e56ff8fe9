"""(X, L) -> (X~, F): label confidence and supervised dimensionality reduction in front of any enhancer."""
