"""The base of all stages: shards in and out, documents batch by batch, the manifest last."""
