"""specs -> cells -> results: any methods on any data with known truth, computed once each and kept in a store."""
