"""Shares of a mix from experiments.

`search` trains a small `proxy` on each of many mixtures and proposes one. `design` draws mixtures
for trainings of your own, and `fit` proposes shares from their results, by the best of all `laws`.
"""
