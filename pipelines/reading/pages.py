"""The page a document was extracted from: its blocks, and its HTML without active content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curation.errors import InputError
from curation.html_page import harmless
from pipelines.run_folder import run_recipe, run_settings
from pipelines.storage.files import Folder

if TYPE_CHECKING:
    from curation.readers import Page


class Inputs:
    """The run's input files by the names that its documents have for them."""

    def __init__(self, folder: Folder, stage: str, inputs: list[str]) -> None:
        self._stage, self._folder = stage, folder
        self._inputs = inputs
        self._paths: dict[str, str] | None = None

    def page(self, source: dict[str, Any]) -> Page:
        """The record of a document. Raises InputError where it can't be found."""
        if not self._inputs:
            raise InputError(
                "the run doesn't say where its inputs are; start with --input PATH to see pages"
            )
        from curation.readers import ReaderSettings, discover, read_at  # compiled kernels

        recipe = run_recipe(self._folder)
        readers = ReaderSettings.model_validate(recipe["readers"])
        if self._paths is None:
            found = discover(self._inputs)
            self._paths = {file.name: file.path for file in found}
        if source["file"] not in self._paths:
            raise InputError(f"{source['file']}: not among the files of --input")
        return read_at(self._paths[source["file"]], source["offset"], readers)

    def blocks(self, source: dict[str, Any]) -> dict[str, Any]:
        """Blocks of the page with score, threshold and fate, as extraction judged them."""
        from curation.extract.explain import explain  # compiled kernels
        from curation.extract.extract_settings import ExtractSettings
        from curation.readers.charset import utf8_html

        page = self.page(source)
        if page.kind != "html":
            raise InputError("a record of plain text has no blocks")
        settings = ExtractSettings.model_validate(run_settings(self._folder, self._stage))
        content, _ = utf8_html(page.content, page.charset)
        explained = explain(content, settings)
        return {
            "notes": explained.notes,
            "blocks": [
                {
                    "text": block.text,
                    "path": block.path,
                    "score": block.score,
                    "threshold": block.threshold,
                    "kept": block.kept,
                    "reason": block.reason,
                    "code": block.code,
                    "values": block.values,
                }
                for block in explained.blocks
            ],
        }

    def html(self, source: dict[str, Any]) -> bytes:
        """The page in UTF-8 with nothing in it that loads, runs or leads elsewhere."""
        from curation.readers.charset import utf8_html

        page = self.page(source)
        if page.kind != "html":
            raise InputError("a record of plain text has no page to show")
        return harmless(utf8_html(page.content, page.charset)[0])
