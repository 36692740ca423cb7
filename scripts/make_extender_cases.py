"""Write the cases with HTTP extenders for the oracle (``oracle/current``, cmd/cycle), one JSON line per case.

Usage: ``python scripts/make_extender_cases.py > cases.jsonl``, then with the answers of the oracle
``python scripts/make_extender_cases.py cases.jsonl answers.jsonl extenders.jsonl.gz``. See
``conformance/extenders/README.md``.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ADDRESS = "127.0.0.1:18891"
Json = dict[str, Any]


def node(name: str, cpu: str = "8", memory: str = "16Gi", zone: str = "", **more: Any) -> Json:
    """Return a node; `extra` adds allocatable resources, `more` fields of the status."""
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"} | more.pop("extra", {})} | more
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, cpu: str = "1", memory: str = "1Gi", on: str = "", **more: Any) -> Json:
    """Return a pod; `on` is the name of its node, `more` are fields of the spec."""
    requests = {"cpu": cpu, "memory": memory} | more.pop("requests", {})
    container = {"name": "c", "image": more.pop("image", "registry.example/app:1"), "resources": {"requests": requests}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"} | more.pop("metadata", {})
    status = more.pop("status", {})
    spec = {"containers": [container]} | ({"nodeName": on} if on else {}) | more
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def extender(path: str = "a", **fields: Any) -> Json:
    """Return an entry of ``extenders`` in the configuration."""
    return {"urlPrefix": f"http://{ADDRESS}/{path}", "nodeCacheCapable": True} | fields


def says(value: Any = None, **more: Any) -> Json:
    """Return a scripted response with this body."""
    body = value if isinstance(value, str) else json.dumps(value)
    return {"status": 200, "body": body} | more


def case(
    number: str, note: str, objects: list[Json], pods: list[Json], extenders: list[Json], responses: Json, **config: Any
) -> Json:
    """Return a case; `responses` maps a path to its responses in order."""
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {
        "id": f"extenders/{number.replace('-', '/', 1)}",
        "family": "extenders",
        "note": note,
        "config": header | {"extenders": extenders} | config,
        "objects": objects,
        "pods": pods,
        "extended": {"address": ADDRESS, "responses": responses},
    }


NODES = [node("n0"), node("n1", cpu="16", memory="32Gi"), node("n2", cpu="4", memory="8Gi")]
NAMES = ["n0", "n1", "n2"]
FILTER = {"filterVerb": "filter"}
BOTH = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 3}


def scores(**given: int) -> Json:
    """Return the response of a prioritize verb, with the scores of nodes."""
    return says([{"Host": host, "Score": score} for host, score in given.items()])


def filters() -> Iterator[Json]:
    """Yield cases about the results of the filter verb."""

    def one(number: str, note: str, answer: Json, verbs: Json = FILTER, **more: Any) -> Json:
        responses = {"/a/filter": [answer], "/a/prioritize": [scores(n0=7, n1=1, n2=10)]}
        return case(f"filter-{number}", note, NODES, [pod("p")], [extender(**verbs, **more)], responses)

    yield one(
        "fails-one",
        "one node fails, scores decide",
        says({"NodeNames": ["n0", "n1"], "FailedNodes": {"n2": "x"}}),
        BOTH,
    )
    yield one("leaves-one", "one node is left: no scores are asked", says({"NodeNames": ["n2"]}), BOTH)
    failed = {"n0": "too hot", "n1": "too hot"}
    all_failed = {"NodeNames": [], "FailedNodes": failed, "FailedAndUnresolvableNodes": {"n2": "broken, for good"}}
    yield one("fails-all", "no node is left", says(all_failed))
    yield one(
        "fails-all-nodes",
        "no node is left, nodes as objects",
        says(all_failed | {"Nodes": {"items": []}}),
        nodeCacheCapable=False,
    )
    both = {
        "NodeNames": [],
        "FailedNodes": {"n0": "a", "n1": "b", "n2": "c"},
        "FailedAndUnresolvableNodes": {"n0": "final"},
    }
    yield one("both-maps", "a node in both maps", says(both))
    yield one("silent", "nodes are left out without a word", says({"NodeNames": ["n1"]}))
    yield one("silent-all", "all nodes are left out without a word", says({"NodeNames": []}))
    yield one("no-list", "no list at all", says({}))
    yield one("null-lists", "lists are null", says({"Nodes": None, "NodeNames": None, "FailedNodes": None}))
    yield one("null", "the answer is null", says(None))
    yield one(
        "unknown-failed",
        "names that are no nodes fail",
        says({"NodeNames": [], "FailedNodes": {"n0": "a", "ghost": "boo"}}),
    )
    yield one("names-for-nodes", "names where nodes are wanted", says({"NodeNames": NAMES}), nodeCacheCapable=False)
    items = {"Nodes": {"items": NODES[:2]}}
    yield one("nodes-for-names", "nodes where names are wanted", says(items))
    yield one("case", "names of fields in another case", says({"nodenames": ["n2"], "FAILEDNODES": {"n0": "a"}}))
    yield one(
        "passes-failed", "a node both passes and fails", says({"NodeNames": ["n1"], "FailedNodes": {"n1": "odd"}})
    )
    yield one("empty-text", "an empty reason", says({"NodeNames": [], "FailedNodes": {"n0": "", "n1": "x", "n2": "x"}}))
    yield one(
        "fails-filtered",
        "a node fails that filters rejected",
        says({"NodeNames": [], "FailedNodes": dict.fromkeys(NAMES, "x")}),
    )
    tiny = node("n3", cpu="500m")
    unsent = {"/a/filter": [says({"Nodes": {"items": [NODES[2], tiny]}})]}
    nodes = extender(**FILTER, nodeCacheCapable=False)
    yield case("filter-unsent", "a node passes that was not asked about", [*NODES, tiny], [pod("p")], [nodes], unsent)
    tight = case(
        "filter-after-plugins",
        "filters come first",
        [*NODES, node("n3", cpu="500m")],
        [pod("p")],
        [extender(**FILTER)],
        {},
    )
    tight["extended"]["responses"]["/a/filter"] = [says({"NodeNames": [], "FailedNodes": {"n0": "x", "n3": "mine"}})]
    yield tight


def failures() -> Iterator[Json]:
    """Yield cases of extenders that fail, each with and without ``ignorable``."""
    wrong = [
        ("error", says({"NodeNames": NAMES, "Error": "out of order"})),
        ("code", says("oops", status=500)),
        ("not-found", says("oops", status=404)),
        ("html", says("<html><body>Bad gateway</body></html>")),
        ("empty", says("")),
        ("cut", says('{"NodeNames": ["n0"')),
        ("array", says("[]")),
        ("string", says('"no"')),
        ("names-text", says({"NodeNames": "n0"})),
        ("names-number", says({"NodeNames": ["n0", 1]})),
        ("failed-list", says({"FailedNodes": ["n0"]})),
        ("failed-number", says({"FailedNodes": {"n0": 1}})),
        ("error-bool", says({"Error": True})),
        ("nodes-list", says({"Nodes": []})),
        ("comma", says('{"NodeNames": ["n0",]}')),
        ("tail", says('{"NodeNames": ["n1"]} and more')),
        ("unknown", says({"NodeNames": ["n0", "ghost"]})),
        ("closed", says("", close=True)),
        ("late", says({"NodeNames": ["n0"]}, delayMs=400)),
    ]
    for name, answer in wrong:
        for ignorable in (False, True):
            more = {"ignorable": ignorable, "httpTimeout": "150ms" if name == "late" else "5s"}
            yield case(
                f"failure-{name}-{'ignorable' if ignorable else 'not'}",
                f"a filter that fails ({name})",
                NODES,
                [pod("p")],
                [extender(**FILTER, **more)],
                {"/a/filter": [answer]},
            )


def orders() -> Iterator[Json]:
    """Yield cases of several extenders, and of extenders that are not interested in the pod."""
    two = [extender("a", **FILTER, ignorable=True), extender("b", **FILTER)]
    responses = {
        "/a/filter": [says({"NodeNames": ["n1"], "FailedNodes": {"n0": "a says no"}})],
        "/b/filter": [says({"NodeNames": ["n1", "n0"], "FailedNodes": {"n2": "b says no"}})],
    }
    yield case("order-ignorable-last", "extenders that can be ignored come last", NODES, [pod("p")], two, responses)
    nothing = responses | {"/b/filter": [says({"NodeNames": [], "FailedNodes": dict.fromkeys(NAMES, "b says no")})]}
    yield case("order-nothing-left", "the second is not asked when none is left", NODES, [pod("p")], two, nothing)
    managed = [{"name": "example.com/foo", "ignoredByScheduler": True}]
    gpu = [node("n0"), node("n1", extra={"example.com/foo": "1"})]
    picky = [extender("a", **FILTER, managedResources=managed)]
    answer = {"/a/filter": [says({"NodeNames": ["n0"], "FailedNodes": {"n1": "no foo"}})]}
    yield case(
        "managed-not", "a pod without the resource", gpu, [pod("p", cpu="7500m"), pod("q", cpu="7500m")], picky, answer
    )
    yield case(
        "managed",
        "the resource is ignored by the scheduler",
        gpu,
        [pod("p", requests={"example.com/foo": "5"})],
        picky,
        answer,
    )
    init = pod("p", initContainers=[{"name": "i", "image": "x", "resources": {"limits": {"example.com/foo": "1"}}}])
    yield case("managed-init", "an init container has a limit", gpu, [init], picky, answer)
    kept = [extender("a", **FILTER, managedResources=[{"name": "example.com/foo"}])]
    yield case("managed-kept", "the resource counts", gpu, [pod("p", requests={"example.com/foo": "1"})], kept, answer)


def priorities() -> Iterator[Json]:
    """Yield cases about scores."""
    verbs = {"prioritizeVerb": "prioritize", "weight": 2}

    def one(number: str, note: str, answer: Json, **config: Any) -> Json:
        return case(
            f"score-{number}", note, NODES, [pod("p")], [extender(**verbs)], {"/a/prioritize": [answer]}, **config
        )

    yield one("decides", "scores decide", scores(n0=1, n1=0, n2=10))
    yield one("high", "scores above 10", scores(n0=100, n1=0, n2=10))
    yield one("negative", "scores below 0", scores(n0=-20, n1=-20, n2=-3))
    yield one(
        "twice",
        "one host twice",
        scores(n0=3, n1=0, n2=4)
        | {"body": '[{"Host":"n0","Score":2},{"Host":"n2","Score":3},{"Host":"n0","Score":2}]'},
    )
    yield one("unknown", "an unknown host", scores(ghost=10, n2=9))
    yield one("none", "no scores", says([]))
    yield one("fails", "an error is ignored", says("x", status=500))
    yield one("float", "a score with a fraction", says([{"Host": "n2", "Score": 7.5}]))
    yield one("text", "a score as text", says([{"Host": "n2", "Score": "7"}]))
    yield one("object", "an object for a list", says({}))
    bare = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"score": {"disabled": [{"name": "*"}]}, "multiPoint": {}},
            }
        ]
    }
    yield one("alone", "no plugin scores", scores(n0=1, n1=2, n2=0), **bare)
    responses = {"/a/filter": [says({"NodeNames": ["n2"]})]}
    yield case(
        "score-nobody", "nobody scores, an extender filters", NODES, [pod("p")], [extender(**FILTER)], responses, **bare
    )
    two = [extender("a", **verbs), extender("b", prioritizeVerb="p", weight=1)]
    both = {"/a/prioritize": [scores(n0=5, n2=1)], "/b/p": [scores(n2=10, n1=1)]}
    yield case("score-two", "two extenders score", NODES, [pod("p")], two, both)


def bare_nodes() -> Iterator[Json]:
    """Yield cases in which an extender returns node objects, so that scores ignore the pods on these nodes."""
    big, small = node("big", cpu="32", memory="64Gi"), node("small", cpu="16", memory="32Gi")
    loaded = [big, small, *(pod(f"r{number}", cpu="7", memory="14Gi", on="big") for number in range(4))]
    items = {"Nodes": {"items": [{"metadata": it["metadata"], "status": it["status"]} for it in (big, small)]}}
    for capable, answer in ((True, {"NodeNames": ["big", "small"]}), (False, items)):
        kind = "names" if capable else "nodes"
        extenders = [extender(**FILTER, nodeCacheCapable=capable)]
        responses = {"/a/filter": [says(answer)]}
        yield case(
            f"bare-usage-{kind}", "a full large node, an empty smaller one", loaded, [pod("p")], extenders, responses
        )
        labels = {"metadata": {"labels": {"app": "web"}}}
        even = [
            node("n0"),
            node("n1"),
            pod("r0", "10m", "10Mi", on="n0", **labels),
            pod("r1", "10m", "10Mi", on="n0", **labels),
        ]
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        taken = answer if capable else {"Nodes": {"items": even[:2]}}
        if capable:
            taken = {"NodeNames": ["n0", "n1"]}
        web = pod("p", metadata={"labels": {"app": "web"}}, topologySpreadConstraints=[spread])
        scorer = extender("b", prioritizeVerb="p", weight=1)
        tipping = {"/a/filter": [says(taken)], "/b/p": [scores(n0=1)]}
        yield case(f"bare-spread-{kind}", "soft spreading by hostname", even, [web], [*extenders, scorer], tipping)
        near = {
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        }
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near | {"weight": 10}]}}
        friend = pod("p", affinity=affinity)
        taken = {"NodeNames": ["n0", "n1"]} if capable else {"Nodes": {"items": even[:2]}}
        tipping = {"/a/filter": [says(taken)], "/b/p": [scores(n1=1)]}
        yield case(
            f"bare-affinity-{kind}", "preferred affinity by hostname", even, [friend], [*extenders, scorer], tipping
        )
        images = [node("n0", images=[{"names": ["registry.example/large:1"], "sizeBytes": 900_000_000}]), node("n1")]
        taken = {"NodeNames": ["n0", "n1"]} if capable else {"Nodes": {"items": images}}
        large = pod("p", image="registry.example/large:1")
        tipping = {"/a/filter": [says(taken)], "/b/p": [scores(n1=1)]}
        yield case(f"bare-images-{kind}", "an image on one node", images, [large], [*extenders, scorer], tipping)


def nominations() -> Iterator[Json]:
    """Yield cases of pods with a nominated node."""
    nominated = {"status": {"nominatedNodeName": "n2"}}
    left = says({"NodeNames": ["n2"]})
    answers = {
        "taken": [left],
        "refused": [says({"NodeNames": [], "FailedNodes": {"n2": "not now"}}), says({"NodeNames": ["n0", "n1"]})],
        "refused-then-all": [says({"NodeNames": [], "FailedNodes": {"n2": "not now"}}), says({"NodeNames": []})],
        "refused-then-passed": [says({"NodeNames": [], "FailedNodes": {"n2": "not now"}}), says({"NodeNames": NAMES})],
        "fails-once": [says("x", status=500), left],
        "fails": [says("x", status=500)],
        "silent": [says({"NodeNames": []}), says({"NodeNames": ["n1", "n0"]})],
    }
    for name, responses in answers.items():
        pods = [pod("p", **nominated), pod("q")]
        yield case(
            f"nominated-{name}", "the nominated node", NODES, pods, [extender(**FILTER)], {"/a/filter": responses}
        )


def preemptions() -> Iterator[Json]:
    """Yield cases of the preempt verb: a pod of high priority fits on none of three nodes with two victims each."""
    nodes = [node(name, cpu="4") for name in NAMES]
    running = [
        pod(
            f"v{number}{name}",
            cpu="1900m",
            memory="1Gi",
            on=name,
            priority=number + 10 * place,
            status={"startTime": "2026-01-01T00:00:00Z"},
        )
        for place, name in enumerate(NAMES)
        for number in (0, 1)
    ]

    def meta(**victims: list[str]) -> Json:
        found = {
            name: {"Pods": [{"UID": f"uid-{victim}"} for victim in pods], "NumPDBViolations": 0}
            for name, pods in victims.items()
        }
        return says({"NodeNameToMetaVictims": found})

    answers = {
        "keeps": meta(n0=["v0n0"], n1=["v0n1"], n2=["v0n2"]),
        "strikes": meta(n1=["v0n1"], n2=["v0n2"]),
        "one": meta(n2=["v0n2"]),
        "more-victims": meta(n0=["v1n0", "v0n0"], n1=["v0n1"]),
        "none": meta(),
        "empty": meta(n0=[], n1=["v0n1"]),
        "all-empty": meta(n0=[]),
        "unknown-node": meta(ghost=["v0n0"]),
        "unknown-pod": meta(n0=["v0n1"]),
        "code": says("x", status=500),
        "null": says({"NodeNameToMetaVictims": None}),
        "garbage": says({"NodeNameToMetaVictims": [1]}),
        "uid-number": says({"NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": 1}]}}}),
    }
    for name, answer in answers.items():
        for ignorable in (False, True):
            for capable in (True, False) if name in ("keeps", "strikes") else (True,):
                number = f"preempt-{name}-{'ignorable' if ignorable else 'not'}{'' if capable else '-nodes'}"
                extenders = [extender(preemptVerb="preempt", ignorable=ignorable, nodeCacheCapable=capable)]
                pods = [pod("p", cpu="2", priority=1000)]
                yield case(number, "candidates", [*nodes, *running], pods, extenders, {"/a/preempt": [answer]})
    unfiltered = [extender(**FILTER)]
    refused = {
        "/a/filter": [
            says({"NodeNames": [], "FailedNodes": {"n0": "x", "n1": "x"}, "FailedAndUnresolvableNodes": {"n2": "y"}})
        ]
    }
    yield case(
        "preempt-refused",
        "an extender refused nodes with pods of lower priority",
        [*nodes, *running],
        [pod("p", cpu="100m", priority=1000)],
        unfiltered,
        refused,
    )
    managed = [extender(preemptVerb="preempt", managedResources=[{"name": "example.com/foo"}])]
    yield case(
        "preempt-uninterested", "not interested", [*nodes, *running], [pod("p", cpu="2", priority=1000)], managed, {}
    )


def bindings() -> Iterator[Json]:
    """Yield cases of the bind verb."""
    answers = {"binds": says({}), "error": says({"Error": "no"}), "code": says("x", status=503), "html": says("<x>")}
    for name, answer in answers.items():
        for ignorable in (False, True):
            extenders = [extender(bindVerb="bind", ignorable=ignorable)]
            number = f"bind-{name}-{'ignorable' if ignorable else 'not'}"
            yield case(number, "binding", NODES, [pod("p")], extenders, {"/a/bind": [answer]})


def samples() -> Iterator[Json]:
    """Yield cases in which the search for feasible nodes ends early."""
    many = [node(f"n{number:03}", zone="abc"[number % 3], cpu="1" if number % 4 == 0 else "8") for number in range(240)]
    names = [it["metadata"]["name"] for it in many]
    pods = [pod(f"p{number}", cpu="2") for number in range(3)]
    half = says({"NodeNames": [], "FailedNodes": dict.fromkeys(names[1::2], "odd")})
    none = says({"NodeNames": []})
    scorer = extender(prioritizeVerb="prioritize", weight=1)
    yield case(
        "sample-prioritize",
        "scores over a sample",
        many,
        pods,
        [scorer],
        {"/a/prioritize": [scores(n001=3)]},
        percentageOfNodesToScore=50,
    )
    yield case(
        "sample-fails",
        "a sample of which nothing is left",
        many,
        pods,
        [extender(**FILTER)],
        {"/a/filter": [half, none, half]},
        percentageOfNodesToScore=50,
    )
    bare = {"profiles": [{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]}
    yield case(
        "sample-unscored",
        "nobody scores, an extender filters",
        many,
        pods,
        [extender(**FILTER)],
        {"/a/filter": [half]},
        **bare,
    )
    binder = extender(bindVerb="bind")
    yield case(
        "sample-first",
        "nobody scores and nobody filters: the first node is enough",
        many,
        pods,
        [binder],
        {"/a/bind": [says({})]},
        **bare,
    )


def pair(cases: str, answers: str, out: str) -> None:
    """Write cases with their answers in comparable form: names instead of objects, sorted where order may vary."""
    from bayplan.conformance.extenders import as_compared, names_of

    records = []
    questions, reported = Path(cases).read_text().splitlines(), Path(answers).read_text().splitlines()
    for question, answer in zip(questions, reported, strict=True):
        asked, want = json.loads(question), json.loads(answer)
        for pod in want["extended"]:
            for exchange in pod["exchanges"]:
                exchange["request"] = names_of(exchange["request"])
        asked["follow"] = [pod["host"] for pod in want["extended"]]
        want["extended"] = [as_compared(pod) for pod in want["extended"]]
        records.append(json.dumps({"case": asked, "want": want}, separators=(",", ":")) + "\n")
    with Path(out).open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write("".join(records).encode())


def main() -> None:
    """Write all cases, or pair them with their answers, depending on the arguments."""
    if len(sys.argv) > 1:
        pair(*sys.argv[1:])
        return
    for family in (filters, failures, orders, priorities, bare_nodes, nominations, preemptions, bindings, samples):
        for each in family():
            json.dump(each, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
