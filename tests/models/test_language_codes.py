"""Codes of languages that callers use, by the labels of thresholds and lists."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.language import LanguageIdentifier
from curation.language.codes import label_of, labelled
from curation.recipe import load

CASES = {
    "de": "deu ger DE de-AT de_CH.UTF-8 deu_Latn German german",
    "zh": "zho chi cmn zh-Hant cmn_Hans zh_TW Chinese",
    "no": "nob nor no-NO",
    "ar": "ara arb_Arab",
    "sq": "sqi als_Latn",  # Tosk Albanian in ISO 639-3
    "als": "als gsw",  # Alemannic in lid.176
    "xho_Latn": "xho_Latn",
    "Klingon": "Klingon",
    "und": "und",
    "": "",
}


@pytest.mark.parametrize(("label", "codes"), CASES.items())
def test_codes_of_one_language(label: str, codes: str) -> None:
    assert {label_of(code) for code in codes.split()} <= {label}
    given = pa.array([*codes.split(), None])
    expected = [label] * len(codes.split()) + [None]
    assert labelled(given).to_pylist() == expected
    assert labelled(given.dictionary_encode()).to_pylist() == expected


def test_labels_of_the_models_stay() -> None:
    labels = LanguageIdentifier(load("fineweb2").identify_language).languages
    assert len(labels) > 500
    assert [label for label in labels if label_of(label) != label] == []
