"""Find evaluation items in training text, however they are formatted, and remove them."""
