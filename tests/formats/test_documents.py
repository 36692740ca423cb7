"""Files to documents: splitting, lists, and the lines of documents and fields."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.formats import documents as documents_module
from bayplan.formats.documents import Document, read_documents
from tests.formats.yaml_writer import DOCUMENTS, STYLES, Style, write

FEW = settings(max_examples=60, deadline=None)


def read(text: str | bytes, suffix: str = "") -> list[Document]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_documents(data, "f", suffix=suffix))


def places(text: str | bytes, suffix: str = "") -> list[tuple[object, int]]:
    return [(each.value, each.source.line) for each in read(text, suffix)]


POD_LIST = "apiVersion: v1\nitems:\n- a: 1\n- a: 2\n  b: 3\nkind: PodList\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 1\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 3)], id="two documents"),
        pytest.param(
            "---\n# x\n\na: 1\n---\n---\nb: 2", [({"a": 1}, 4), ({"b": 2}, 7)], id="empty documents are skipped"
        ),
        pytest.param("--- # first\na: 1\n", [({"a": 1}, 2)], id="a comment after the dashes"),
        pytest.param("a: |\n  ---\n  x\n", [({"a": "---\nx\n"}, 1)], id="dashes inside a text"),
        pytest.param("a: ---x\n", [({"a": "---x"}, 1)], id="dashes inside a value"),
        pytest.param("a: 1\n...\n---\nb: 2\n", [({"a": 1}, 1), ({"b": 2}, 4)], id="the end of a document"),
        pytest.param("%YAML 1.1\n---\na: yes\n", [({"a": True}, 3)], id="a directive"),
        pytest.param("a: 1\r\n---\r\nb: 2\r\n", [({"a": 1}, 1), ({"b": 2}, 3)], id="line ends of Windows"),
        pytest.param("---\n{\n  a: 1,\n}\n", [({"a": 1}, 2)], id="flow style (KYAML)"),
        pytest.param('{"a": 1}', [({"a": 1}, 1)], id="JSON without a .json suffix"),
        pytest.param("{a: 1}\n---\n{b: 2}", [({"a": 1}, 1), ({"b": 2}, 3)], id="almost JSON is YAML"),
        pytest.param('\n{"a": 1}\n{"a": 2}', [({"a": 1}, 2), ({"a": 2}, 3)], id="JSON lines"),
        pytest.param(POD_LIST, [({"a": 1}, 3), ({"a": 2, "b": 3}, 4)], id="the items of a list"),
        pytest.param(
            "kind: List\nitems:\n- kind: PodList\n  items: [{a: 1}]\n- b: 2",
            [({"a": 1}, 3), ({"b": 2}, 5)],
            id="a list in a list",
        ),
        pytest.param("kind: List\nitems: []", [({"kind": "List", "items": []}, 1)], id="an empty list stays"),
        pytest.param("[1]", [([1], 1)], id="not an object"),
        pytest.param("", [], id="nothing"),
        pytest.param("# only words\n---\n", [], id="comments"),
    ],
)
def test_files_are_split_into_documents_with_line_numbers(text: str, want: list[tuple[object, int]]) -> None:
    assert places(text) == want


@pytest.mark.parametrize(
    ("encoding", "bom"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
    ],
)
def test_unicode_encodings_are_detected(encoding: str, bom: bytes) -> None:
    assert places(bom + "a: é".encode(encoding)) == [({"a": "é"}, 1)]


@pytest.mark.parametrize(
    ("text", "suffix", "want"),
    [
        pytest.param(b"a: 1\nb: [", "", r"^f:2 broken YAML: .*flow", id="YAML"),
        pytest.param(b"a: 1\n---\nb: 1\nc: @x\n", "", r"^f:4 broken YAML: .*; try quotes", id="the second document"),
        pytest.param(b'{"a":\n}', ".json", r"^f:2 broken JSON: ", id="JSON"),
        pytest.param(b"a: 1", ".json", r"^f:1 broken JSON: ", id="YAML in a .json file"),
        pytest.param(b"a: 1\nb: \xff\n", "", r"^f:2 text: expected UTF-8, got byte 0xff", id="bytes that are not text"),
    ],
)
def test_syntax_errors_are_reported_with_their_line(text: bytes, suffix: str, want: str) -> None:
    with pytest.raises(InputError, match=want):
        read(text, suffix)


def test_duplicate_fields_are_reported_with_their_lines() -> None:
    assert [each.duplicates for each in read("a: 1\n---\nb: 1\nb: 2\n")] == [[], [("f:4", "b")]]
    assert [each.duplicates for each in read('{"a": 1}\n{"b": 1, "b": 2}')] == [[], [("f:2", "b")]]


def test_items_of_typed_lists_have_their_list_type() -> None:
    assert [each.list_type for each in read(POD_LIST)] == [("v1", "PodList")] * 2
    assert [each.list_type for each in read('{"kind": "List", "apiVersion": "v1", "items": [{"a": 1}]}')] == [None]


TEXT = """\
# a pod
spec:
  containers:
  - name: c
    image: x
  - name: d
    resources: {requests: {cpu: two}}
metadata:
  labels:
    app.kubernetes.io/name: a
    app: b
"""


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("$", 2, id="the document"),
        pytest.param("$.spec.containers[1].resources.requests.cpu", 7, id="a field"),
        pytest.param("$.spec.containers[1]", 6, id="an item"),
        pytest.param("$.metadata.labels.app.kubernetes.io/name", 10, id="a name with dots"),
        pytest.param("$.metadata.labels.app", 11, id="a name that begins another"),
        pytest.param("$.metadata.name", 8, id="a missing field: the position of its parent"),
        pytest.param("$.spec.containers[7].image", 3, id="a missing item"),
    ],
)
def test_line_of_returns_the_line_of_a_field_or_its_closest_parent(path: str, want: int) -> None:
    first, second = read("x: 1\n---\n" + TEXT)
    assert (second.line_of(path), second.where(path)) == (want + 2, f"f:{want + 2}")
    assert first.line_of(path) == 1


def test_line_of_finds_fields_in_list_items() -> None:
    yaml_item = read("kind: List\nitems:\n- a: 1\n- b:\n    c: 2\n")[1]
    flow_item = read("{kind: List, items: [{a: 1},\n {b: {\n c: 2}}]}")[1]
    json_item = read('{"kind": "List", "items": [\n{"a": 1},\n{"b": {\n"c": 2}}]}')[1]
    assert [each.line_of("$.b.c") for each in (yaml_item, flow_item, json_item)] == [5, 3, 4]


ITEMS = st.lists(DOCUMENTS, min_size=1, max_size=5)


@FEW
@given(ITEMS, STYLES, st.sampled_from(["", "  "]), st.booleans())
def test_splitting_large_lists_does_not_change_documents(
    items: list[dict[str, object]], style: Style, margin: str, last: bool
) -> None:
    rows = []
    for item in items:
        lines = write(item, style).splitlines()
        first = next(index for index, line in enumerate(lines) if not line.startswith("#"))
        rows += [f"{margin}{'- ' if index == first else '  '}{line}" for index, line in enumerate(lines)]
    body = "items:\n" + "\n".join(rows) + "\n"
    text = f"apiVersion: v1\n{body}kind: PodList\n" if last else f"kind: PodList\napiVersion: v1\n{body}"
    want = [(each.value, each.source, each.list_type) for each in read(text)]
    limit = documents_module._SPLIT_ABOVE
    documents_module._SPLIT_ABOVE = 0
    try:
        got = [(each.value, each.source, each.list_type) for each in read(text)]
    finally:
        documents_module._SPLIT_ABOVE = limit
    assert got == want
    assert [value for value, _, _ in got] == items


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('kind: List\nitems:\n- a: 1\n- b: "x\n- y"\n- c: 2\n', id="a dash at the margin of a quoted text"),
        pytest.param(
            'kind: List\nitems:\n- kind: List\n  items: [{a: 1}, {a: 2}]\n- kind: List\n  items: []\n- b: "x\n- y"\n- c: 2\n',
            id="the same after lists of two items and of none",
        ),
        pytest.param("kind: List\nitems:\n- a: &x 1\n- b: *x\n- c: [\n2]\n", id="aliases to other items"),
        pytest.param("kind: List\nitems:\n- a: 1\n-\n  b: 2\n- c: 3\n", id="a dash alone on its line"),
        pytest.param("kind: List\nitems:\n# x\n- a: 1\n", id="a comment before the first item"),
        pytest.param("kind: Basket\nitems:\n- a: 1\n", id="no list kind"),
        pytest.param("kind: List\nitems:\n- a: 1\nmetadata: {}\nother:\n- b\n", id="another list after it"),
    ],
)
def test_large_lists_that_cannot_be_split_are_read_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [(each.value, each.source.line) for each in read(text)]
    monkeypatch.setattr(documents_module, "_SPLIT_ABOVE", 0)
    assert [(each.value, each.source.line) for each in read(text)] == want


def test_errors_in_split_lists_have_the_correct_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_module, "_SPLIT_ABOVE", 0)
    with pytest.raises(InputError, match=r"^f:5 broken YAML"):
        read("kind: List\nitems:\n- a: 1\n- b: 2\n  c: d: e\n")


@FEW
@given(st.lists(DOCUMENTS, max_size=4), STYLES)
def test_written_yaml_documents_are_read_back(values: list[dict[str, object]], style: Style) -> None:
    text = "".join(f"---{style.newline}{write(value, style)}" for value in values)
    assert [each.value for each in read(text)] == values


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"kind": "PodList", "apiVersion": "v1", "items": [{"a": 1}]}', {"apiVersion": "v1", "kind": "Pod", "a": 1}),
        ('{"kind": "PodList", "apiVersion": "v1", "items": [{"kind": "Node"}]}', {"kind": "Node"}),
        ('{"kind": "List", "apiVersion": "v1", "items": [{"a": 1}]}', {"a": 1}),
    ],
    ids=["an item of a typed list", "one that says itself what it is", "an item of a general list"],
)
def test_items_of_typed_lists_get_the_kind_of_their_list(text: str, want: object) -> None:
    (document,) = read_documents(text.encode(), "text")
    assert document.value_with_kind() == want


def test_a_document_that_is_not_an_object_is_refused_with_its_line() -> None:
    (document,) = read_documents(b"\n- a\n", "text.yaml")
    with pytest.raises(InputError, match=r"text.yaml:2 document: expected an object, got a list of 1$"):
        document.value_with_kind()
    (objects,) = read_documents(b"- {kind: Pod}\n", "text.yaml")
    with pytest.raises(InputError, match=r"got a list of 1; try 'kind: List'"):
        objects.value_with_kind()
