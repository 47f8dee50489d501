"""Stage `withdraw`."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from curation.config import Settings
from curation.errors import ConfigError
from curation.stages.base import NamedFile, Stage


class WithdrawSettings(Settings):
    """Which documents are left out. Defaults: `configs/defaults/withdraw.yaml`."""

    documents: str | None = Field(
        description="Parquet table of the documents to leave out: `id`, and `reason` and `value` "
        "to record with them, as `curate withdraw` writes it"
    )


class _Withdraw(Stage[WithdrawSettings]):
    name = "withdraw"
    purpose = "leave out documents that were withdrawn"
    settings = WithdrawSettings
    after = "mix"
    optional = True
    per_mix = True
    cost = 0.05

    def load(self, settings: WithdrawSettings) -> None:
        if settings.documents is None:
            raise ConfigError("withdraw.documents: name a table, as `curate withdraw` writes it")

    def files(self, settings: WithdrawSettings) -> Iterator[NamedFile]:
        if settings.documents is not None:
            yield NamedFile("withdraw.documents", settings.documents, "file or folder")


STAGE = _Withdraw()
