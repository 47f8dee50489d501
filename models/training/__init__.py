"""Train the models that stages use, from files the user names."""
