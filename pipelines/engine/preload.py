"""Importing this module imports all that a worker needs, before workers are forked."""

import importlib

from curation.recipe import STAGES

importlib.import_module("apache_beam.runners.worker.sdk_worker")
for _stage in STAGES:
    importlib.import_module(f"pipelines.{_stage.replace('-', '_')}")
