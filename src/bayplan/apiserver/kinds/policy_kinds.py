"""Strategies of disruption budgets, priority classes, storage classes and CSI drivers."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy, raise_generation
from bayplan.apiserver.model.errors import forbidden
from bayplan.base.plain_data import Document, part

_CLASSES = "scheduling.k8s.io/priorityclasses"


class BudgetStrategy(Strategy):
    """Pod disruption budgets: an update requires the resource version."""

    counts_generations = True
    unconditional_update = False
    name_check = "path"
    checks_own_metadata = True  # Its rules check the spec only.


class PriorityClassStrategy(Strategy):
    """Priority classes: at most one is the global default, and their values are immutable."""

    counts_generations = True
    generation_fields = ()

    def admit_valid(self, context: Context, new: Document, old: Document | None) -> None:
        """Raise if the class would be the global default although there is one; a new one even if it has the same name.

        Raises:
            ApiError: a class is the global default.
        """
        if not new.get("globalDefault"):
            return
        name = part(new, "metadata").get("name")
        for each in context.cluster.all(_CLASSES):
            other = part(each, "metadata").get("name")
            if each.get("globalDefault") and (old is None or other != name):
                why = f"PriorityClass {other} is already marked as default. Only one default can exist"
                raise forbidden("priorityclasses", "scheduling.k8s.io", str(name), why)


class DriverStrategy(Strategy):
    """CSI drivers, whose generation counts the changes since they were created."""

    returns_deleted = True
    unconditional_update = False

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Increment the generation if the spec changed."""
        super().prepare_update(context, new, old)
        if new.get("spec") != old.get("spec"):
            raise_generation(new, old)


class StorageClassStrategy(Strategy):
    """Storage classes: only labels, annotations and volume expansion can change."""

    returns_deleted = True
