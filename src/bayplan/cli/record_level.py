"""The option ``--records``: how much of every decision is kept."""

from enum import StrEnum

from bayplan.engine.records import RecordLevel


class Level(StrEnum):
    """How much of every decision is recorded, as an option."""

    OFF = "off"
    SUMMARY = "summary"
    FULL = "full"

    @property
    def record_level(self) -> RecordLevel:
        """The engine's name for it."""
        return RecordLevel[self.name]
