"""A pipeline of your own: pages to deduplicated documents of some languages, with a rule of yours.

    python examples/beam_pipeline.py --input 'crawl/*.warc.gz' --output corpus --language de fr

Further options are Beam's, such as `--runner=FlinkRunner --flink_master=...`. Writes the stage
folder `corpus/dedup-documents` (`curate report --run corpus` reads it), what went into it to
`corpus/long`, and what was removed before to `corpus/removed`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.options.pipeline_options import PipelineOptions

from curation.recipe import load
from curation.schema import Verdicts
from pipelines.transforms import (
    Apply,
    DeduplicateDocuments,
    Extract,
    IdentifyLanguage,
    ReadPages,
    WriteShards,
)

#: Characters that a document of this corpus should have at least.
SHORTEST = 200


def long_enough(documents: pa.RecordBatch) -> Verdicts:
    """Remove short documents: what your own rule looks like."""
    lengths = pc.utf8_length(documents["text"]).to_numpy()
    return Verdicts.where(lengths < SHORTEST, "example.short", lengths.astype(float), SHORTEST)


def build(
    pipeline: beam.Pipeline, inputs: Sequence[str], output: str, languages: Sequence[str]
) -> None:
    """Add all steps to a pipeline."""
    recipe = load("llama3", [f"identify-language.languages=[{','.join(languages)}]"])
    pages = pipeline | ReadPages(inputs)
    extracted = pages.pages | Extract()
    language = extracted.documents | IdentifyLanguage(recipe.identify_language)
    long = language.documents | Apply(long_enough, stage="length")
    for name, judged in {"extract": extracted, "language": language, "length": long}.items():
        _ = judged.removed | f"Removed by {name}" >> WriteShards(f"{output}/removed/{name}")
    shards = long.documents | WriteShards(f"{output}/long")
    _ = shards | DeduplicateDocuments(output, recipe)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the pipeline; what isn't an option here is Beam's."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", nargs="+", required=True, help="files, folders, globs or URLs")
    parser.add_argument("--output", required=True, help="a folder, local or a URL")
    parser.add_argument("--language", nargs="+", default=["en"], help="codes of those to keep")
    options, others = parser.parse_known_args(arguments)
    with beam.Pipeline(options=PipelineOptions([o for o in others if o != "--"])) as pipeline:
        build(pipeline, options.input, options.output, options.language)


if __name__ == "__main__":
    main()
