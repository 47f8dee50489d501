"""Draw documents so that domains have exact shares of a token budget."""
