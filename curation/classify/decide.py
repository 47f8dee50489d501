"""Which documents stay, by quality, its rank in the language, and topic."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from curation.classify.classifier import ClassifyResult
from curation.classify.settings import ClassifySettings
from curation.schema import Verdicts

LOW_SCORE = "quality.low_score"
LOW_RANK = "quality.low_rank"
DROPPED = "topic.dropped"


def decide(result: ClassifyResult, settings: ClassifySettings) -> Verdicts:
    """Remove documents below their domain's quality, then below its rank, then dropped topics."""
    verdicts = Verdicts.keep_all(len(result))
    quality = result.quality.to_numpy(zero_copy_only=False)
    domains = np.array(result.domain.to_pylist(), object)
    for domain, least in sorted(settings.min_quality.items()):
        low = (domains == domain) & (quality < np.float32(least))
        verdicts = verdicts.otherwise(
            Verdicts.where(low, LOW_SCORE, quality.astype(np.float64), least)
        )
    if result.rank is not None:
        ranks = result.rank.to_numpy(zero_copy_only=False)
        for domain, least in sorted(settings.min_rank.items()):
            low = (domains == domain) & (ranks < np.float32(least))
            verdicts = verdicts.otherwise(
                Verdicts.where(low, LOW_RANK, ranks.astype(np.float64), least)
            )
    dropped = np.array([topic in settings.drop_topics for topic in result.topic.to_pylist()], bool)
    scores = result.topic_score.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return verdicts.otherwise(Verdicts.where(dropped, DROPPED, scores))
