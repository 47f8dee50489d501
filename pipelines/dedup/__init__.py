"""What stages share that compare documents: ranges of keys, verdicts, graphs, indexes."""
