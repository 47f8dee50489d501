"""Entry of the flex template: submit the next job of a run to Dataflow, and end.

A template's launcher may start one job and must not wait for it. A run is a chain of jobs whose
input is the output of those before, and what is finished is never redone: launched again after each
job, with the same parameters, this comes to the end of the recipe.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from curation.errors import CurationError
from curation.recipe import load
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.chain import Chain
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.jobs import Jobs


class SubmittedError(Exception):
    """Ends the driver: a job has been handed over."""


class NextJob(Jobs):
    """Hands over one job instead of running it."""

    def check(self, *_: object) -> None:
        """Allow a dry run, which one job can do."""

    def run(self, work: Chain, name: str) -> None:
        # The service has named the job already and finds it by that name.
        named = any(a.startswith("--job_name") for a in self.arguments)
        self.pipeline(work, "" if named else name).run()
        raise SubmittedError(name)


class LaunchingExecutor(Executor):
    """Passes over what is complete, up to the first step with something to do."""

    def __enter__(self) -> Executor:
        self._jobs = NextJob(self.options.runner, self.options.beam_args)
        return super().__enter__()


def main(argv: Sequence[str] | None = None) -> int:
    """Submit; say what, or that nothing is left to do."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--input", default="")
    parser.add_argument("--stages", default="")
    parser.add_argument("--set", default="", dest="assignments")
    own, beam = parser.parse_known_args(argv)
    if not any(a.startswith("--runner") for a in beam):
        beam = ["--runner=DataflowRunner", *beam]
    try:
        recipe = load(own.recipe, [s for s in own.assignments.split(";") if s])
        inputs, stages = ([s for s in o.split(",") if s] for o in (own.input, own.stages))
        work = plan(recipe, own.output, inputs, stages)
        with LaunchingExecutor(parse_beam_args(beam, None)) as executor:
            run_plan(work, executor)
    except SubmittedError as submitted:
        print(f"submitted: {submitted}")
        return 0
    except CurationError as error:
        print(f"launcher: error: {error}", file=sys.stderr)
        return error.exit_code
    print("the run is complete: nothing to submit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
