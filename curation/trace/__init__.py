"""Find where a passage occurs in a corpus, by sampled fingerprints, and its exact spans."""
