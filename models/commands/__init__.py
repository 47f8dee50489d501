"""The commands that train or compare models: plug-ins of `curate`, which stand on `pipelines`.

This module is a table that the command line reads; their modules are imported when they are used.
"""

from __future__ import annotations

from pipelines.commands import Command

COMMANDS = {
    "ablate": Command(
        "models.commands.ablate",
        "train the same small model on several runs and compare them",
        "curate ablate ours=out theirs='other/*.jsonl.zst' --eval gold=gold.parquet --output cmp",
        after="export",
    ),
    "mix": Command(  # in place of the stage's command
        "models.commands.mix",
        "draw the training mixture",
        "curate mix --input out/filter --output out --recipe llama3",
    ),
    "train": Command(
        "models.commands.train",
        "train a model that the stages use",
        "curate train quality --input labelled.jsonl.gz --output my-quality",
        after="trace",
    ),
}
