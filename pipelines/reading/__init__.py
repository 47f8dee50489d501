"""Reading a finished run: what became of its documents, why, and what other settings would do."""
