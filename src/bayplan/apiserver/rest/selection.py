"""Selection of the items of a list or watch by namespace, name, labels and fields."""

from __future__ import annotations

import msgspec

from bayplan.apiserver.kinds.selectable_fields import canonical_field, custom_value, field_problem
from bayplan.apiserver.model.errors import bad_request
from bayplan.apiserver.model.requests import ListOptions, RequestInfo
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.model.selectors import FieldRequirement, parse_fields, parse_labels
from bayplan.apiserver.rest.backend import stored_document
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.listeners import Aspect
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import Requirement


class Selection(msgspec.Struct, frozen=True):
    """The conditions that the items of a list or watch meet.

    Attributes:
        namespace: the namespace, empty for all.
        name: the name, empty for all.
        labels: the requirements on labels.
        fields: the requirements on other fields.
        custom: the custom resource whose definition declares the fields, because items do not store their values; None
            for a built-in resource.
    """

    namespace: str = ""
    name: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    custom: Resource | None = None

    @property
    def is_everything(self) -> bool:
        """Whether all items of the namespace, or all items if it is empty, are selected."""
        return not self.labels and not self.fields and not self.name

    def is_single(self, resource: Resource) -> bool:
        """Return whether at most one object of a resource can be selected, because its name and namespace are given."""
        return bool(self.name) and bool(self.namespace or not resource.namespaced)

    @property
    def aspect(self) -> Aspect | None:
        """The value that all selected items share and that excludes most others; None if everything is selected."""
        if self.name:
            return Aspect("name", "", self.name)
        for field in () if self.custom is not None else self.fields:
            if field.value and not field.negated and not field.field.startswith("metadata."):
                return Aspect("field", field.field, field.value)
        for label in self.labels:
            if label.operator == "In" and len(label.values) == 1 and label.values[0]:
                return Aspect("label", label.key, label.values[0])
        return Aspect("namespace", "", self.namespace) if self.namespace else None

    def matches(self, item: Item) -> bool:
        """Return whether an item is selected."""
        if self.namespace and item.namespace != self.namespace:
            return False
        if self.name and item.name != self.name:
            return False
        document: Document | None = None
        for requirement in self.fields:
            field = requirement.field
            if self.custom is None or field.startswith("metadata."):
                found = _value(item, field)
            else:
                document = stored_document(self.custom, item) if document is None else document
                found = custom_value(document, field)
            if (found == requirement.value) is requirement.negated:
                return False
        labels = item.labels
        return all(requirement.matches(labels) for requirement in self.labels)


def _value(item: Item, field: str) -> str:
    if field == "metadata.name":
        return item.name
    return item.namespace if field == "metadata.namespace" else item.fields.get(field, "")


def selection(info: RequestInfo, options: ListOptions) -> Selection:
    """Return the selection of a list or watch. Field requirements on name and namespace become `name` and `namespace`.

    Raises:
        ApiError: a selector cannot be parsed, or does not select the object that the path names.
    """
    table = info.resource.table
    labels = parse_labels(options.label_selector)
    requirements = parse_fields(options.field_selector, lambda field: field_problem(info.resource, field))
    named = [each for each in requirements if each.field == "metadata.name" and not each.negated]
    if info.name and requirements and all(each.value != info.name for each in named):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    namespace, name, rest = info.namespace, info.name, []
    for requirement in requirements:
        field = canonical_field(table, requirement.field)
        if not requirement.value:
            rest.append(FieldRequirement(field, "", requirement.negated))
        elif field == "metadata.name" and not requirement.negated and name in ("", requirement.value):
            name = requirement.value
        elif field == "metadata.namespace" and not requirement.negated and namespace in ("", requirement.value):
            namespace = requirement.value
        else:
            rest.append(FieldRequirement(field, requirement.value, requirement.negated))
    custom = info.resource if info.resource.custom is not None else None
    return Selection(namespace, name, labels, tuple(rest), custom)
