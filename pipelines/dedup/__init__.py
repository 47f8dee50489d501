"""Code shared by the deduplication stages: key ranges, verdicts, graphs, indexes."""
