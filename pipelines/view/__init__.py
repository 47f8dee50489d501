"""The explorer: a local web server that answers queries about a run folder, and its page."""
