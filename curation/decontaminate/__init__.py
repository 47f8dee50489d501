"""Evaluation items in training text: found however they are wrapped, and taken out."""
