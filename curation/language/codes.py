"""Languages as callers write them, by the labels that thresholds and lists are named by.

Data sets call German `de`, `deu`, `ger`, `de-AT`, `deu_Latn` or `German`; here it is `de`.
"""

import functools

import pyarrow as pa
import pyarrow.compute as pc

from curation.resources import root

#: Codes that are a label by themselves and another language's code where a script follows:
#: ISO 639-3 has `als` for Tosk Albanian, lid.176 for Alemannic.
_WITH_SCRIPT = {"als": "sq"}
_SCRIPT = 4  # letters of a script's code


def label_of(code: str) -> str:
    """Return the label of a language given as ISO 639-1, 639-2 or 639-3, BCP 47 or English name.

    Region and variant are dropped, and so is a script: `pt-BR` is `pt`, `srp_Cyrl` is `sr`. What
    is no language of the table stays as it is, such as `xho_Latn`.
    """
    known = _labels()
    name = code.strip().lower()
    if name in known:
        return known[name]
    first, *rest = name.replace("_", "-").split("-")
    if rest and len(rest[0]) == _SCRIPT:
        first = _WITH_SCRIPT.get(first, first)
    return known.get(first, code) if rest else code


def labelled(codes: pa.Array) -> pa.Array:
    """Return `label_of` of every code, null where there is none or a blank: string [rows]."""
    if not pa.types.is_dictionary(codes.type):
        codes = codes.dictionary_encode()
    names = codes.dictionary.to_pylist()
    labels = [label_of(name) if name and name.strip() else None for name in names]
    return pc.take(pa.array(labels, pa.string()), codes.indices)


@functools.cache
def _labels() -> dict[str, str]:
    """Labels by themselves, by other codes and by names, in lower case."""
    path = root() / "configs" / "lists" / "language_codes.tsv"
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            label, others = line.split("\t")
            found |= {name.lower(): label for name in (label, *others.split(", "))}
    return found
