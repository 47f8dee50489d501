"""Where a passage occurs in a corpus: sampled fingerprints that find it, and its exact spans."""
