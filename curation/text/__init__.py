"""Words, lines and sentences of texts in any script, found on UTF-8 buffers."""
