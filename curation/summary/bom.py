"""A bill of materials in the form of CycloneDX 1.6: what a run was made of, and what it made."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs (RFC 9562)
_SHA256 = "SHA-256"
_TOOLKIT = "curation, as it wrote this bill"


def bill(
    name: str,
    root: str,
    recipe_sha256: str | None,
    manifests: Mapping[str, Mapping[str, Any]],
    inputs_of: Sequence[str],
    toolkit_sha256: str,
) -> dict[str, Any]:
    """Return the bill of a run: software, code, recipe, models, lists, evaluation sets, inputs
    and outputs, each with its hash.

    `inputs_of` are the stages that read raw input. Fingerprints of raw files, which are not
    SHA-256, are properties. `toolkit_sha256` is of the toolkit that writes the bill. The same run
    and toolkit give the same bytes.
    """
    components = [
        *_software(manifests),
        _component("application", "code", _TOOLKIT, toolkit_sha256),
        *_recipe(recipe_sha256),
        *_materials(manifests),
        *_inputs(manifests, inputs_of),
        *_outputs(manifests),
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, f'urn:sha256:{root}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "data",
                "bom-ref": "run",
                "name": name,
                "hashes": _hashes(root),
                "description": "SHA-256 of SHA256SUMS, which has the hashes of recipe and "
                "manifests, which have those of all files",
            }
        },
        "components": components,
    }


def _component(kind: str, role: str, name: str, sha256: str, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": f"{role}:{name}",
        "name": name,
        "hashes": _hashes(sha256),
        **more,
    }


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": _SHA256, "content": sha256}]


def _software(manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    found = {pair for m in manifests.values() for pair in m.get("software", {}).items()}
    for name, version in sorted(found):
        purl = f"pkg:pypi/{name}@{version}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
        }


def _recipe(sha256: str | None) -> Iterator[dict[str, Any]]:
    if sha256:
        yield _component("data", "recipe", "recipe.yaml", sha256)


def _materials(manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Models by stage, lists and evaluation sets by path, and code of the user's own."""
    seen: set[str] = set()
    for stage, manifest in manifests.items():
        evals = _evaluation_files(manifest)
        for model, sha256 in sorted(manifest.get("models", {}).items()):
            yield _component("machine-learning-model", "model", f"{stage}/{model}", sha256)
        for path, sha256 in sorted(manifest.get("lists", {}).items()):
            role = "evaluation" if any(path.startswith(e) for e in evals) else "list"
            if f"{role}:{path}" not in seen:
                seen.add(f"{role}:{path}")
                yield _component("data", role, path, sha256)
        for code, sha256 in sorted(manifest.get("code", {}).items()):
            yield _component("file", "code", f"{stage}/{code}", sha256)


def _evaluation_files(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    evals = (manifest.get("settings") or {}).get("evals")
    sets = evals.values() if isinstance(evals, Mapping) else ()
    return tuple(path for one in sets for path in one.get("files", ()))


def _inputs(
    manifests: Mapping[str, Mapping[str, Any]], stages: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for stage in stages:
        for given in manifests[stage].get("inputs", ()):
            fact = {"name": "curation:fingerprint", "value": given["fingerprint"]}
            yield {
                "type": "data",
                "bom-ref": f"input:{given['name']}",
                "name": given["name"],
                "properties": [fact],
            }


def _outputs(manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for stage, manifest in manifests.items():
        for name, facts in sorted(manifest.get("files", {}).items()):
            yield _component("file", "output", f"{stage}/{name}", facts["sha256"])
