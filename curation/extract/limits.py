"""What is refused: pages that exceed a limit of the settings."""

from __future__ import annotations


class PageTooLargeError(ValueError):
    """A page exceeds a limit of the settings: `reason`, `value` and `threshold` say which."""

    def __init__(self, reason: str, value: float, threshold: float) -> None:
        super().__init__(reason, value, threshold)
        self.reason, self.value, self.threshold = reason, value, threshold

    def __str__(self) -> str:
        return f"{self.reason}: {self.value:,.0f} is over {self.threshold:,.0f}"
