"""Strategies of events and leases."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation.events import check_event, check_event_update
from bayplan.base.plain_data import Document


class EventStrategy(Strategy):
    """Events, of both groups; stored as those of the core group. The group of the request decides which rules hold."""

    create_on_update = True
    name_check = "path"

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check a new event."""
        return check_event(document, is_core=context.resource.group == "")

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Check changes of metadata, but not those through the core group."""
        return () if context.resource.group == "" else ("change",)

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check a change."""
        return check_event_update(new, old, is_core=context.resource.group == "")


class LeaseStrategy(Strategy):
    """Leases: an update names its version, and one of what is not there creates it."""

    create_on_update = True
    unconditional_update = False
