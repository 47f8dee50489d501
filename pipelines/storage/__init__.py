"""Files that are whole or absent; shards, runs and manifests in them; what is damaged."""
