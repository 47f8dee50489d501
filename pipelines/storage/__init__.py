"""Storage: atomically written files, shards, sorted runs, manifests, damage detection."""
