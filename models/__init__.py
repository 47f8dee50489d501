"""Trained models, each in a folder with its card, and `models.training`, which trains them."""
