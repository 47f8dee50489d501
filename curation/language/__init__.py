"""Language identification.

>>> from curation.language import identify
>>> labels, scores = identify(["Der Hund schläft auf dem Sofa.", ""])
>>> labels
['de', 'und']
"""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.language.identifier import LanguageIdentifier as LanguageIdentifier
    from curation.language.identifier import identify as identify

lazily(__name__, identifier="LanguageIdentifier identify")
