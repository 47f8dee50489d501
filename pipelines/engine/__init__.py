"""What all stages share: shards in and out, documents batch by batch, the manifest last."""
