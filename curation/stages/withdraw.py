"""Stage `withdraw`."""

from pydantic import Field

from curation.config import Settings
from curation.errors import ConfigError
from curation.resources import NamedPath
from curation.stages.base import Stage


class WithdrawSettings(Settings):
    """Which documents are left out. Defaults: `configs/defaults/withdraw.yaml`."""

    documents: NamedPath | None = Field(
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


STAGE = _Withdraw()
