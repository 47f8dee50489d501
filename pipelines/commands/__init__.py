"""The commands of `curate`, one module each."""
