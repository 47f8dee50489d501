"""Quality, domain, topic and format of documents, by linear models over hashed words."""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.classify.classifier import score as score

lazily(__name__, classifier="score")
