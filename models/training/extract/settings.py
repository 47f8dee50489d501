"""How the extractor's model is trained."""

from __future__ import annotations

from pydantic import Field

from curation.config import Natural, Positive, Settings, built_in_settings
from curation.extract.model import MAX_LEAVES

SKELETONS = "skeletons"  # stands for a set in the names of the pages made of them


class ExtractTraining(Settings):
    """How the extractor's model is trained; defaults in configs/train/extract.yaml."""

    sets: tuple[str, ...] = Field(description="sets with gold text")
    other_sets: tuple[str, ...] = Field(description="sets that only --all-sets learns from")
    set_weights: dict[str, float] = Field(description="of pages of a set against 1 of others")
    label_file: str = Field(description="pages of which we labelled the blocks (labels.py)")
    skeleton_file: str = Field(description="pages of our own to be filled (skeletons.py)")
    text_file: str = Field(description="texts of our own that fill them")
    skeleton_copies: Natural = Field(description="pages made of each skeleton")
    skeleton_weight: float = Field(ge=0, description="of each of these pages")
    skeleton_weights: dict[str, float] = Field(description="of kinds of them against 1 of others")
    forum_weight: float = Field(gt=0, description="of pages of forums against 1 of others")
    variants: Natural = Field(description="copies of each page with its markup rewritten")
    variant_weight: float = Field(ge=0)
    shortened: tuple[tuple[float, float], ...] = Field(
        description="bounds in words of copies of each page with its content cut short"
    )
    shortened_weight: float = Field(ge=0)
    grafted: tuple[float, float] = Field(
        description="bounds in words of what copies of articles get behind them of other pages"
    )
    grafted_weight: float = Field(ge=0)
    region_list: str = Field(description="groups of class names (YAML)")
    class_sites: Positive
    word_sites: Positive
    smoothing: float = Field(gt=0)
    blocks_per_page: Positive
    label_share: float = Field(gt=0, lt=1)
    bags: Positive = Field(description="of trees, of which the mean judges")
    sure: float = Field(ge=0, description="log odds from which the first bag judges alone")
    trees: Positive = Field(description="of each bag")
    leaves: int = Field(ge=2, le=MAX_LEAVES)
    learning_rate: float = Field(gt=0)
    min_samples_leaf: Positive
    l2: float = Field(ge=0)
    max_features: float = Field(gt=0, le=1)
    bins: int = Field(ge=2, le=255)
    folds: int = Field(ge=2)
    all_folds: int = Field(ge=2)
    seed: Natural

    def weight_of(self, name: str, kind: str = "") -> float:
        """Weight of a page of a set, or of a kind of skeletons."""
        if name == SKELETONS:
            return self.skeleton_weights.get(kind, 1.0)
        return self.set_weights.get(name, 1.0)

    def with_all_sets(self) -> ExtractTraining:
        """These settings with all sets, whatever their licences: to measure, never to ship."""
        sets = (*self.sets, *self.other_sets)
        return self.model_copy(update={"sets": sets, "folds": self.all_folds})


def default_training() -> ExtractTraining:
    return built_in_settings(ExtractTraining, "train/extract")
