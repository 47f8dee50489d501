"""The commands of `curate`, one module each."""

#: Stages that a finished run can be an index for.
INDEXED_STAGES = ("dedup-urls", "dedup-documents", "dedup-lines")
