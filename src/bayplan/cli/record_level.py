"""The option ``--records``: the detail of recorded decisions."""

from enum import StrEnum

from bayplan.engine.records import RecordLevel


class Level(StrEnum):
    """Detail of recorded decisions, as an option."""

    OFF = "off"
    SUMMARY = "summary"
    FULL = "full"

    @property
    def record_level(self) -> RecordLevel:
        """The engine's name for this level."""
        return RecordLevel[self.name]
