"""Stage `mix`."""

from collections.abc import Collection, Mapping
from typing import Any

from curation.config import Settings, merge
from curation.errors import ConfigError
from curation.inputs import UNNAMED, check_name, fold_inputs
from curation.mix.mix_settings import MixSettings, Mixture
from curation.stages.base import Columns, Stage
from curation.stages.tokenize import tokenizer_checksums

#: Folders of `mix` and `tokenize`, next to which those of the named mixes lie.
_FOLDERS = ("documents", "removed", "shards", "tokens", "index")


class _Mix(Stage[MixSettings]):
    name = "mix"
    purpose = "draw the training mixture"
    settings = MixSettings
    after = "filter"
    adds = ("tokens", "repeats")
    cost = 0.3
    passes = 3
    packages = ("numpy", "tiktoken")
    per_mix = True
    shown = ("tokens", "repeats")

    def reads(self, settings: MixSettings) -> Columns:
        used = ("domain", "topic", "format", "language", "quality", "cluster_size")
        every = [settings.mixture(name) for name in ("", *self.mixes(settings))]
        needed = [] if all(mixture.inputs for mixture in every) else ["domain"]
        needed += [name for mixture in every for name in mixture.views]
        for _, repeats in (one for mixture in every for one in mixture.all_repeats):
            needed += ["quality"] if repeats.by == "quality" and not repeats.fitted else []
            needed += [repeats.within] if repeats.within != "domain" else []
        return Columns(tuple(dict.fromkeys(needed)), used)

    def adds_of(self, settings: MixSettings) -> tuple[str, ...]:
        phased = any(settings.mixture(name).phases for name in ("", *self.mixes(settings)))
        return (*self.adds, "places") if phased else self.adds

    def also(self, recipe: Any) -> dict[str, Settings]:
        return {"tokenize": recipe.tokenize.encoding}

    def prepare(self, tree: dict[str, Any], recipe: str) -> None:
        """Move the weights of named inputs to `mix.sources`, and complete the named mixes."""
        fold_inputs(tree, recipe)
        mix = tree.get("mix")
        mixes = mix.get("mixes") if isinstance(mix, dict) else None
        if not isinstance(mix, dict) or not isinstance(mixes, dict):
            return
        for name in mixes:
            check_name(str(name), f"{recipe}: mix.mixes")
            if name in _FOLDERS:
                raise ConfigError(
                    f"{recipe}: mix.mixes: {name!r} is a stage's folder "
                    f"(as are {', '.join(f for f in _FOLDERS if f != name)})"
                )
        base = {k: v for k, v in mix.items() if k != "mixes"}
        mix["mixes"] = {name: _completed(own, base) for name, own in mixes.items()}

    def check(
        self, settings: MixSettings, recipe: Any, known: Mapping[str, Collection[str]]
    ) -> None:
        from curation.classify.classifier import check_labels  # compiled kernels
        from curation.mix.plan import check_domains

        for name in ("", *self.mixes(settings)):
            key, mixture = f"mix.mixes.{name}" if name else "mix", settings.mixture(name)
            if "domain" in known and not mixture.inputs:
                check_domains(mixture.domains, known["domain"], f"{key}.domains")
            for kind, names in (("topic", mixture.topics), ("format", mixture.formats)):
                if kind in known:
                    check_labels(kind, names, known[kind], f"{key}.{kind}s")

    def check_unnamed(self, settings: MixSettings, path: str) -> None:
        for name in ("", *self.mixes(settings)):
            mixture = settings.mixture(name)
            if mixture.inputs and UNNAMED not in mixture.inputs:
                key, names = f"mix.mixes.{name}" if name else "mix", tuple(mixture.inputs)
                raise ConfigError(
                    f"--input {path}: {key} draws from named inputs: write {names[0]}={path} "
                    f"(names: {', '.join(names)})"
                )

    def models(self, settings: MixSettings, also: Mapping[str, Any]) -> dict[str, str]:
        return tokenizer_checksums(also["tokenize"].tokenizer)

    def mixes(self, settings: MixSettings) -> tuple[str, ...]:
        return tuple(sorted(settings.mixes))

    def sources(self, settings: MixSettings) -> tuple[str, ...]:
        every = (settings.mixture(name) for name in ("", *self.mixes(settings)))
        return tuple(sorted({name for mixture in every for name in mixture.input_names}))

    def of_mix(self, settings: MixSettings, mix: str) -> Mixture:
        return settings.mixture(mix)


def _completed(own: Any, base: dict[str, Any]) -> Any:
    """Return a named mix with what it leaves out from the mix without a name."""
    if own is not None and not isinstance(own, dict):
        return own
    own = own or {}
    # Two curves are not to be mixed key by key.
    return merge(base | {"repeats": None} if "repeats" in own else base, own)


STAGE = _Mix()
