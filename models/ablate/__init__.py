"""Compare corpora by the models they train: equal tokens, one small model, several seeds.

`experiment` has the texts as numbers, `order` the stream that a model reads. A learner measures
held-out texts and tasks after reading it: `transformer` and `trainer` (PyTorch) or `instant` (a
trigram model). `statistics` turns what several seeds measured into intervals, `results` into files.

Everything but `prepare` and `instant` needs numpy alone, and `trainer` PyTorch: a prepared
experiment can be trained on a machine without the toolkit's other packages
(`python -m models.ablate FOLDER`).
"""
