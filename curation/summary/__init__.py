"""What must be published of training data: figures with their SQL, and the documents made of them.

Nothing here reads a run: `pipelines.reading.summary` brings its manifests and its tables.
"""
