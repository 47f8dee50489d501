"""Shares of a mix from experiments.

`design` draws mixtures for trainings of your own, and `fit` proposes shares from their results, by
the best of all `laws`.
"""
