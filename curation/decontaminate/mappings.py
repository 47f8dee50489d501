"""Fields of evaluation sets' rows, and mappings of well-known sets with licence and source."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from curation.config import Settings, nearest, read_values
from curation.errors import ConfigError
from curation.resources import root


class Fields(Settings):
    """Which fields of a row are the parts of an item."""

    question: tuple[str, ...] = Field(min_length=1, description="the first that is not empty")
    also: tuple[str, ...] = Field(
        default=(), description="fields that belong to the question, in order"
    )
    choices: tuple[str, ...] = Field(
        default=(), description="one field with a list, or a field each"
    )
    answer: tuple[str, ...] = Field(
        default=(), description="a text, a choice's letter or its position"
    )
    labels: tuple[str, ...] = Field(
        default=(), description="a list with the names by which the answer calls the choices"
    )
    first: int = Field(default=0, ge=0, le=1, description="position of the first choice: 0 or 1")
    passage: tuple[str, ...] = Field(default=(), description="the text that the question is about")
    id: tuple[str, ...] = Field(default=(), description="default: the row's number")


#: Names that many sets use, for those without a mapping.
COMMON = Fields(
    question=(
        *("question", "Question", "query", "prompt", "problem", "instruction", "input", "goal"),
        *("sentence", "ctx", "premise", "text", "content"),
    ),
    choices=("choices.text", "choices", "options", "endings", "mc1_targets.choices"),
    labels=("choices.label",),
    answer=(
        *("answer", "answers.text", "answers", "Answer", "answerKey", "target", "label", "gold"),
        *("output", "solution", "canonical_solution", "completion"),
    ),
    passage=("context", "passage", "story", "article", "background"),
    id=("id", "question_id", "task_id", "idx", "eval_instance_index", "ind"),
)


class Mapping(NamedTuple):
    """The mapping and metadata of an evaluation set."""

    title: str
    source: str  # where its publishers provide it
    licence: str
    fields: Fields
    splits: tuple[str, ...] = ()
    note: str = ""


def mapping_names() -> list[str]:
    """Return the names of all mappings, sorted."""
    return sorted(path.stem for path in (root() / "configs" / "evals").glob("*.yaml"))


def load_mapping(name: str) -> Mapping:
    """Return a mapping by name. Raises ConfigError with the nearest name."""
    if name not in mapping_names():
        raise ConfigError(f"no mapping {name!r} in configs/evals{nearest(name, mapping_names())}")
    return read_values(f"builtin:configs/evals/{name}.yaml", Mapping)
