"""Convert documents of manifests and dumps to typed objects; refuse invalid input, and warn about unusual input.

Errors (InputError with file, line, object, JSON path) stop the load: invalid YAML or JSON, a field of the wrong type, a
malformed quantity, an amount or an operator that kube-apiserver refuses, a file without documents, an object without
kind or name. Warnings (see `WarningKind`) are errors with `strict=True`: unknown kinds and fields, duplicate fields and
objects (the last one counts), pods bound to missing nodes, amounts that kube-scheduler counts differently, and
documents that are not Kubernetes objects in files that were found in a folder. Notes are never errors: kinds that
kube-scheduler does not read, kinds inferred from an object's shape or list, generated names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.formats import schema, shapes
from bayplan.formats.amounts import amount_warnings, quantity_hint
from bayplan.formats.files import InputFile
from bayplan.formats.fixed_values import check_values
from bayplan.formats.manifest import LoadedObject, LoadWarning, Manifest, UnusedObject, WarningKind, shown
from bayplan.formats.suggestions import suggest_field, suggest_kind
from bayplan.objects import kinds
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import KINDS, ResourceKind, describe
from bayplan.objects.meta import KubernetesObject, changed
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.pod_defaults import default_pod, default_pod_status

if TYPE_CHECKING:
    from bayplan.formats.documents import Document

_PRECISE_LINES = 100
"""Number of warnings about fields that have the field's line. To find it, the document is parsed a second time."""
_MAX_PREFIX_LENGTH = 58
"""kube-apiserver truncates a longer `generateName`."""

_GUESSED_NAMES = 20
"""Maximum number of missing nodes for which to search a similar name."""


_NAMELESS = "only generateName, no name"
_POD = kinds.kind_of(Pod)

_Key = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""

_INDEX = re.compile(r"\[\d+\]")


class _NoObject(InputError):
    """A document is not a Kubernetes object: it lacks the kind or the apiVersion."""


class GeneratedNames:
    """Names for objects with `generateName`: a prefix and a counter. Several loaders may share them.

    Args:
        given: the names of objects that will be loaded.
    """

    def __init__(self, given: Iterable[_Key] = ()) -> None:
        self._numbers: dict[_Key, int] = {}
        self._given = dict.fromkeys(given)
        self._generated: dict[_Key, None] = {}

    def generate(self, row: ResourceKind, namespace: str, prefix: str, taken: Container[_Key]) -> str:
        """Return a name that no object has. Unlike names from the API server, these are equal in every load."""
        key = _key(row, namespace, prefix[:_MAX_PREFIX_LENGTH])
        while True:
            number = self._numbers[key] = self._numbers.get(key, 0) + 1
            name = f"{key[3]}{number:05d}"
            if not any((*key[:3], name) in names for names in (taken, self._given, self._generated)):
                return name

    def record(self, keys: Iterable[_Key], generated: Container[_Key]) -> None:
        """Record the names of loaded objects, and which of them were generated."""
        for key in keys:
            (self._generated if key in generated else self._given)[key] = None

    def for_next_load(self, pods: Iterable[Pod]) -> GeneratedNames | None:
        """Return names with which to load the same objects again if a generated name is also a given one, otherwise None.

        Args:
            pods: pods that were not read by these loaders.
        """
        if not self._generated:
            return None
        given = self._given | dict.fromkeys(map(_pod_key, pods))
        return None if self._generated.keys().isdisjoint(given) else GeneratedNames(given)


class ManifestLoader:
    """Builds a manifest from documents, one by one; used by `bayplan.formats.inputs.load_inputs`.

    Args:
        strict: whether to refuse input that otherwise causes a warning.
        names: generates names that differ from those of other loaders with the same object.

    Attributes:
        manifest: the objects and warnings so far.
        documents: the number of documents so far.
    """

    def __init__(self, *, strict: bool, names: GeneratedNames | None = None) -> None:
        self.manifest = Manifest()
        self.documents = 0
        self._found = False
        self._strict = strict
        self._by_name: dict[_Key, LoadedObject] = {}
        self._typed_lists: set[tuple[str, str]] = set()
        self._names = names or GeneratedNames()
        # The positions of objects with generated names in the manifest, and of the warnings about these names.
        self._places: dict[_Key, tuple[int, int]] = {}
        self._field_warnings = 0
        self._field_hints: dict[tuple[str, str], str] = {}
        self._specs = _SharedSpecs()

    def begin(self, file: InputFile) -> None:
        """Start a file, whose documents are then passed to `take`."""
        self.manifest.files.append(file.name)
        self._found = file.found

    def take(self, document: Document) -> None:
        """Process the next document.

        Raises:
            InputError: the document is invalid; see this module's docstring.
        """
        self.documents += 1
        value = document.checked_value()
        for where, name in document.duplicates:
            problem = f"duplicate field {name!r}"
            self._warn(WarningKind.DUPLICATE_FIELD, where, describe(value), problem, "the last one counts")
        try:
            value = self._with_kind(document, value)
        except _NoObject as problem:
            # Folders of manifests also contain other files, such as values of templates or configurations of other
            # programs.
            if not self._found:
                raise
            lacking = "neither apiVersion nor kind" if problem.got == "neither" else problem.got
            text = f"not a Kubernetes object: it has {lacking}"
            self._warn(WarningKind.NO_OBJECT, str(document.source), describe(value), text, "ignored")
            return
        api_version, kind = str(value["apiVersion"]), str(value["kind"])
        if kind.endswith("List") and value.get("items", value) in ([], None):
            return
        row = kinds.find_kind(api_version, kind)
        if row is None:
            self._leave_unused(document, value, api_version, kind)
            return
        self._check_fields(document, value, row)
        item = self._typed(document, value, row)
        self._check_values(document, value)
        self._check_amounts(document, value)
        self._keep(LoadedObject(row, item, document.source, document.raw))

    def finish(self, known_nodes: Collection[str] = (), other_pods: Iterable[Pod] = ()) -> Manifest:
        """Run the checks that need all documents, and return the manifest.

        Args:
            known_nodes: the names of nodes from other input (a trace), to which pods may be bound.
            other_pods: the pods from other input, from which generated names must differ.
        """
        manifest = self.manifest
        if self._places:
            self._avoid(dict.fromkeys(map(_pod_key, other_pods)))
        self._names.record(self._by_name, self._places)
        replaced = {id(each) for each in manifest.replaced}
        manifest.loaded = [each for each in manifest.loaded if id(each) not in replaced]
        names = {node.metadata.name for node in manifest.nodes}.union(known_nodes)
        hints: dict[str, str] = {}
        for each in manifest.loaded:
            node_name = each.typed.spec.node_name if isinstance(each.typed, Pod) else ""
            if not node_name or node_name in names:
                continue
            if node_name not in hints:
                guess = len(hints) < _GUESSED_NAMES
                close = near_name(node_name, sorted(names)) if guess else ""
                hints[node_name] = f"'{close}'" if close else ""
            what = f"{each.kind.kind} {each.typed.key} $.spec.nodeName"
            problem = f"bound to node {node_name!r}, which is not in the input"
            self._warn(WarningKind.MISSING_NODE, str(each.source), what, problem, hint=hints[node_name])
        return manifest

    # --- kinds --------------------------------------------------------------------------------------------------------

    def _with_kind(self, document: Document, value: dict[str, object]) -> dict[str, object]:
        """Return an object with apiVersion and kind, inferred from its list or its shape if it lacks both."""
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if isinstance(api_version, str) and api_version and isinstance(kind, str) and kind:
            return value
        what = describe(value)
        for name, found in (("apiVersion", api_version), ("kind", kind)):
            if found not in (None, "") and not isinstance(found, str):
                raise self._refusal(document, f"{what} $.{name}", wanted="a string", got=shown(found))
        if api_version or kind:
            missing = "kind" if api_version else "apiVersion"
            versions = [row.api_version for row in KINDS if row.kind == kind]
            hint = f"'apiVersion: {versions[0]}'" if versions else ""
            wanted = "an object with apiVersion and kind"
            raise self._no_object(document, f"{what} $.{missing}", wanted=wanted, got=f"no {missing}", hint=hint)
        if document.list_type is not None:
            list_version, list_kind = document.list_type
            inferred = (list_version, list_kind.removesuffix("List"))
            if (document.source.file, list_kind) not in self._typed_lists:
                self._typed_lists.add((document.source.file, list_kind))
                problem = f"items without kind in a {list_kind}; read as {inferred[1]}"
                self._warn(WarningKind.INFERRED_KIND, str(document.source), list_kind, problem)
        else:
            inferred_kind = shapes.infer_kind(value)
            if inferred_kind is None:
                hint = "apiVersion and kind, as in 'apiVersion: v1' and 'kind: Pod'"
                raise self._no_object(
                    document, what, wanted="an object with apiVersion and kind", got="neither", hint=hint
                )
            inferred = inferred_kind
            problem = f"neither apiVersion nor kind; read as {inferred[1]}, which has these fields"
            self._warn(WarningKind.INFERRED_KIND, str(document.source), what, problem)
        return {**value, "apiVersion": inferred[0], "kind": inferred[1]}

    def _leave_unused(self, document: Document, value: dict[str, object], api_version: str, kind: str) -> None:
        """Add an object that Bayplan has no type for to the unused objects, with a warning or note."""
        metadata = value.get("metadata")
        named = metadata if isinstance(metadata, Mapping) else {}
        namespace, name = (str(named.get(key) or "") for key in ("namespace", "name"))
        unused = UnusedObject(api_version, kind, namespace, name, document.source, document.raw)
        self.manifest.unused.append(unused)
        what, where = describe(value), str(document.source)
        if schema.find_kind(api_version, kind) is not None:
            problem = f"kube-scheduler does not read {api_version} {kind}"
            self._warn(WarningKind.UNUSED_KIND, where, what, problem, "ignored")
        else:
            problem = f"Kubernetes {schema.schema().release} has no {api_version} {kind}"
            hint = suggest_kind(api_version, kind)
            self._warn(WarningKind.UNKNOWN_KIND, where, what, problem, "ignored", hint=hint)

    # --- fields -------------------------------------------------------------------------------------------------------

    def _check_fields(self, document: Document, value: dict[str, object], row: ResourceKind) -> None:
        """Warn about fields that the type of an object does not have."""
        if value["apiVersion"] != row.api_version:
            value = {**value, "apiVersion": row.api_version}
        for path in schema.unknown_fields(value, document.raw):
            shape = (row.kind, _INDEX.sub("[]", path))
            if shape not in self._field_hints:
                self._field_hints[shape] = suggest_field(value, path)
            what, hint = f"{describe(value)} {path}", self._field_hints[shape]
            where = self._where(document, path)
            self._warn(WarningKind.UNKNOWN_FIELD, where, what, "unknown field", "it has no effect", hint=hint)

    def _check_values(self, document: Document, value: dict[str, object]) -> None:
        """Reject values that are not among the allowed values of their field, as kube-apiserver does.

        Raises:
            InputError: a value is not allowed.
        """
        check_values(value, document.where)

    def _check_amounts(self, document: Document, value: dict[str, object]) -> None:
        """Reject amounts that kube-apiserver rejects, and warn about amounts that do not count as written.

        Raises:
            InputError: an amount is not allowed.
        """
        for odd in amount_warnings(value):
            what = f"{describe(value)} {odd.path}"
            text = document.written(odd.path) or odd.text
            if odd.refused:
                raise InputError(what, where=document.where(odd.path), wanted=odd.refused, got=f"'{text}'")
            problem = f"{text} is {odd.problem}"
            self._warn(WarningKind.ODD_AMOUNT, self._where(document, odd.path), what, problem)

    def _where(self, document: Document, path: str) -> str:
        """Return file and line of a field to warn about; after `_PRECISE_LINES` warnings, those of its object."""
        self._field_warnings += 1
        precise = self._strict or self._field_warnings <= _PRECISE_LINES
        return document.where(path) if precise else str(document.source)

    def _typed(self, document: Document, value: dict[str, object], row: ResourceKind) -> KubernetesObject:
        """Return the typed object, with a name and defaults."""
        try:
            item = kinds.decode(value)
            item = self._named(document, value, row, item)
            return self._specs.defaulted(item) if isinstance(item, Pod) else default_object(item)
        except InputError as problem:
            raise _placed(problem, document, value) from None

    def _named(
        self, document: Document, value: dict[str, object], row: ResourceKind, item: KubernetesObject
    ) -> KubernetesObject:
        """Generate the name of an object with `generateName`, and remove the namespace of a cluster-scoped object."""
        metadata = item.metadata
        if not metadata.name:
            if not metadata.generate_name:
                raise InputError(f"{describe(value)} $.metadata.name", wanted="a name", got="none")
            metadata = replace(
                metadata, name=self._names.generate(row, metadata.namespace, metadata.generate_name, self._by_name)
            )
            key = _key(row, metadata.namespace, metadata.name)
            self._places[key] = len(self.manifest.loaded), len(self.manifest.warnings)
            where = str(document.source)
            self._warn(WarningKind.GENERATED_NAME, where, describe(value), _NAMELESS, _named(metadata.name))
        if metadata.namespace and not row.namespaced:
            problem = f"a {row.kind} has no namespace"
            what = f"{describe(value)} $.metadata.namespace"
            where = self._where(document, "$.metadata.namespace")
            self._warn(WarningKind.UNKNOWN_FIELD, where, what, problem, "it has no effect")
            metadata = replace(metadata, namespace="")
        return item if metadata is item.metadata else replace(item, metadata=metadata)

    def _avoid(self, keys: Mapping[_Key, None]) -> None:
        """Give objects whose generated names are among these keys other names."""
        self._names.record(keys, ())
        for key in [key for key in self._places if key in keys]:
            self._rename(self._by_name.pop(key), self._places.pop(key))

    def _rename(self, earlier: LoadedObject, place: tuple[int, int]) -> None:
        """Give an object whose generated name another object has a new name."""
        metadata, (index, warning) = earlier.typed.metadata, place
        name = self._names.generate(earlier.kind, metadata.namespace, metadata.generate_name, self._by_name)
        renamed = replace(earlier, typed=replace(earlier.typed, metadata=replace(metadata, name=name)))
        self.manifest.loaded[index] = renamed
        key = _key(earlier.kind, metadata.namespace, name)
        self._by_name[key], self._places[key] = renamed, place
        self.manifest.warnings[warning] = replace(
            self.manifest.warnings[warning], problem=f"{_NAMELESS}; {_named(name)}"
        )

    def _keep(self, loaded: LoadedObject) -> None:
        metadata = loaded.typed.metadata
        key = _key(loaded.kind, metadata.namespace, metadata.name)
        earlier = self._by_name.get(key)
        place = self._places.pop(key, None) if earlier is not None else None
        if earlier is not None and place is not None:
            self._rename(earlier, place)
        elif earlier is not None:
            self.manifest.replaced.append(earlier)
            what = f"{loaded.kind.kind} {loaded.typed.key}"
            problem = f"also defined at {earlier.source}"
            self._warn(WarningKind.DUPLICATE_OBJECT, str(loaded.source), what, problem, "the later one is used")
        self._by_name[key] = loaded
        self.manifest.loaded.append(loaded)

    # --- reporting ----------------------------------------------------------------------------------------------------

    def _warn(
        self, kind: WarningKind, where: str, what: str, problem: str, consequence: str = "", *, hint: str = ""
    ) -> None:
        """Record a warning with the problem and its consequence. If the load is strict, raise InputError instead."""
        if self._strict and not kind.is_note:
            raise InputError(f"{what}: {problem}; refused because of --strict", where=where, hint=hint)
        problem = f"{problem}; {consequence}" if consequence else problem
        self.manifest.warnings.append(LoadWarning(kind=kind, where=where, what=what, problem=problem, hint=hint))

    def _no_object(self, document: Document, what: str, *, wanted: str, got: str, hint: str) -> InputError:
        return _NoObject(what, where=document.where("$"), wanted=wanted, got=got, hint=hint)

    def _refusal(self, document: Document, what: str, *, wanted: str, got: str, hint: str = "") -> InputError:
        _, _, path = what.partition(" $")
        return InputError(what, where=document.where(f"${path}"), wanted=wanted, got=got, hint=hint)


def _key(row: ResourceKind, namespace: str, name: str) -> _Key:
    return row.group, row.kind, (namespace or "default") if row.namespaced else "", name


def _pod_key(pod: Pod) -> _Key:
    return _key(_POD, pod.metadata.namespace, pod.metadata.name)


def _named(name: str) -> str:
    return f"named {name!r}"


def _placed(problem: InputError, document: Document, value: dict[str, object]) -> InputError:
    """Add the line of the invalid field to an error. If YAML changed the type of a scalar, also show the scalar as written."""
    what, separator, rest = problem.what.partition(" $")
    path = f"${rest}"
    what = problem.what if separator else f"{describe(value)} {problem.what}"
    got, hint = problem.got, problem.hint
    if problem.wanted == "a quantity" and (meant := quantity_hint(got.strip("'"), is_cpu=path.endswith(".cpu"))):
        hint = f"'{meant}'"
    written = document.written(path) if problem.wanted == "a string" else ""
    if written:
        got, hint = (got if got == written else f"{got} (written {written})"), f"'{written}'"
    return InputError(what, where=document.where(path), got=got, wanted=problem.wanted, hint=hint)


class _SharedSpecs:
    """Gives pods the API's defaults. Pods that differ only in name and node share all other parts.

    This saves memory, lets the scheduler find plans by identity, and computes the defaults of each spec only once.
    """

    def __init__(self) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._specs: dict[bytes, PodSpec] = {}
        self._known: dict[bytes, Pod] = {}

    def defaulted(self, pod: Pod) -> Pod:
        """Return a pod with the API's defaults."""
        bare = replace(pod.spec, node_name="")
        key = self._encode(bare)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._specs[key] = default_pod(Pod(spec=bare)).spec
        metadata, node_name = pod.metadata, pod.spec.node_name
        status = default_pod_status(pod.status)
        alike = self._encode((metadata.labels, metadata.owner_references, node_name, id(spec)))
        known = self._known.get(alike)
        if known is not None:
            same, spec = known.metadata, known.spec
            metadata = replace(metadata, labels=same.labels, owner_references=same.owner_references)
        elif node_name:
            spec = replace(spec, node_name=node_name)
        metadata = changed(metadata, namespace=metadata.namespace or "default")
        found = Pod(metadata=metadata, spec=spec, status=status)
        return self._known.setdefault(alike, found) if known is None else found
