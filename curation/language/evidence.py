"""How much two language models count, by how much text they read, and when neither is believed.

The weights are functions of the bytes of letters in a text, linear between the knots in the binary
logarithm: a model that is right about lines may guess at words. Bytes rather than letters, since a
Chinese character says as much as a Latin syllable.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Binary logarithms of the bytes at which weights are given.
KNOTS = np.array([3.0, 4.0, 5.0, 6.0, 7.0, 9.0])

#: What is weighed for every label: the log probabilities of both models, in general and in addition
#: for the languages of most pages; whether the label is one of those; and whether it is foreign, a
#: language that the first model does not have.
WEIGHED = ("first", "second", "first_large", "second_large", "large", "foreign")

#: What the refusal weighs: a constant, the binary logarithm of the bytes, the strangeness of the
#: letters, the logarithms of the best label's evidence in either model and of its probability, and
#: whether it is the language of many pages.
REFUSAL = ("constant", "bytes", "strange", "first", "second", "best", "large")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Weights at the knots, and of the refusal."""

    weights: Floats  # [WEIGHED, knots]
    refusal: Floats  # [REFUSAL] log odds for a language that no model has
    strange_from: float  # deviations of strangeness that are still usual

    def scores(
        self, first: Floats, second: Floats, sizes: Ints, large: Mask, foreign: Mask
    ) -> Floats:
        """Log evidence for every label from that of the two models: [texts, labels]."""
        # Sums in order: a BLAS has threads that wait for more, and other last bits elsewhere.
        at = (hats(sizes)[:, None] * self.weights).sum(2)
        of = {name: at[:, i, None] for i, name in enumerate(WEIGHED)}
        one = first * (of["first"] + of["first_large"] * large)
        two = second * (of["second"] + of["second_large"] * large)
        return one + two + of["large"] * large + of["foreign"] * foreign

    def refused(self, seen: Floats) -> Floats:
        """Probability that a text is in a language of neither model, from `REFUSAL`."""
        odds = np.clip((seen * self.refusal).sum(1), -30, 30)
        return np.asarray(1 / (1 + np.exp(-odds)))


def hats(sizes: Ints) -> Floats:
    """Shares of the knots in a weight for texts of these bytes: [texts, knots], rows sum to 1."""
    at = np.log2(np.maximum(sizes, 1)).clip(KNOTS[0], KNOTS[-1])
    return np.stack([np.interp(at, KNOTS, row) for row in np.eye(len(KNOTS))], 1)


#: Scores and shares are rounded, so that bytes of outputs do not depend on the last bits of a sum.
DECIMALS = 4
