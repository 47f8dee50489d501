"""Numbers and names of the paths of documents."""

PROSE_PATH, CODE_PATH, MATH_PATH = 0, 1, 2
PATHS = ("prose", "code", "mathematics")
