"""Generate the cases of the golden files: random quantities, pods, selectors and tolerations, from one seed.

    python -m tests.objects.golden.make_cases GENERATOR

runs GENERATOR, the compiled program in `generator/`, on the cases, and writes cases and results to the files in this
folder.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
Json = dict[str, object]

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
EDGE_NUMBERS = ["9223372036854775807", "9223372036854775808", "9223372036854775", "8192", "1024", "999", "0", "00", "1"]
USUAL_AMOUNTS: list[object] = ["0", "1", "100m", "250m", "1.5", "2", "64Mi", "1Gi", "1G", "1.5Gi", "128974848", "129e6"]
USUAL_AMOUNTS += ["12", "0.5", ".5", "1e3", 3, 2.5, 1000]
TINY_AMOUNTS = ["100u", "1n", "0.0001", "1.5m", "999999n", "1e-7"]
WILD_AMOUNTS = [
    "10E",
    "9223372036854775807",
    "9.3E",
    "-5",
    "-1.5",
    "-100u",
    "8Ei",
    "7Ei",
    "16Ei",
    "9223372036854775808",
]
WILD_AMOUNTS += ["5e30", "-3Gi", "1E", "9000P", "9223372036854775.807", "-0.0001"]
RESOURCES = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "example.com/gpu",
    "hugepages-2Mi",
    "hugepages-1Gi",
    "kubernetes.io/x",
]
RESOURCES += ["attachable-volumes-x", "pods", "storage", "a.kubernetes.io/b", "requests.foo/x", "Bad_Name/x!"]
KEYS = ["a", "zone", "example.com/x", "num"]
ODD_KEYS = [*KEYS, "bad key", "a/b/c", "", "x" * 64, "/x", "Foo.com/y", f"{'y' * 254}/z"]
VALUES = ["", "a", "b", "1", "5", "-3", "+5", "007"]
ODD_VALUES = [*VALUES, "9223372036854775807", "9223372036854775808", "1e3", "bad!", "x" * 64, "12a", "0", "-0", "--1"]
OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class Maker:
    """A generator of random cases; the same seed gives the same cases."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.wild = False

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *choices: object) -> object:
        return self.random.choice(choices)

    def one(self, choices: Sequence[str]) -> str:
        return self.random.choice(choices)

    def several(self, most: int, make: Callable[[], object]) -> list[object]:
        return [make() for _ in range(self.random.randint(0, most))]

    # --- quantities ---

    def quantity_text(self) -> str:
        if self.chance(0.12):
            return "".join(self.one("0123456789..+-eEinumkKMGTP ") for _ in range(self.random.randint(0, 8)))
        number = self.digits(self.random.choice([0, 1, 1, 2, 3, 6, 15, 17, 18, 19, 20, 25]))
        if self.chance(0.2):
            number = self.one(EDGE_NUMBERS)
        if self.chance(0.3):
            number += "0" * self.random.randint(0, 6)
        if self.chance(0.4):
            number += "." + self.digits(self.random.choice([0, 1, 2, 3, 6, 9, 10, 18, 22]))
        return self.one(["", "", "", "-", "+"]) + number + self.suffix()

    def digits(self, count: int) -> str:
        return "".join(self.one("0123456789") for _ in range(count))

    def suffix(self) -> str:
        if self.chance(0.8):
            return self.one(SUFFIXES)
        if self.chance(0.03):
            return self.one(
                ["e99999999999999999999", "e9223372036854775807", "e-9223372036854775808", "Ee5", "e+", "e-"]
            )
        exponent = self.random.choice([self.random.randint(-25, 40), self.random.randint(-4, 4)])
        if self.chance(0.05):
            exponent += self.random.choice([-1, 1]) * 2**32
        return f"{self.one('eE')}{exponent}"

    def quantity(self) -> Json:
        return {"op": "quantity", "text": self.quantity_text(), "other": self.quantity_text()}

    # --- pods ---

    def amount(self) -> object:
        if self.chance(0.03):
            return self.pick(*TINY_AMOUNTS)
        if self.wild and self.chance(0.25):
            return self.pick(*WILD_AMOUNTS)
        return self.pick(*USUAL_AMOUNTS)

    def amounts(self, names: Sequence[str] = RESOURCES) -> Json:
        few = names if self.chance(0.4) else names[:3]
        return {self.one(few): self.amount() for _ in range(self.random.randint(0, 4))}

    def resources(self) -> Json:
        lists = {"limits": self.amounts(), "requests": self.amounts()}
        return {name: amounts for name, amounts in lists.items() if self.chance(0.7)}

    def container(self, name: str) -> Json:
        container: Json = {"name": name, "image": self.pick("a", "a:1", "registry:5000/a", "x/y@sha256:abc")}
        if self.chance(0.85):
            container["resources"] = self.resources()
        if self.chance(0.3):
            container["ports"] = self.several(3, self.port)
        return container

    def port(self) -> Json:
        port: Json = {"containerPort": self.random.randint(1, 100)}
        if self.chance(0.5):
            port["hostPort"] = self.pick(80, 8080)
        if self.chance(0.3):
            port["hostIP"] = "10.0.0.1"
        if self.chance(0.5):
            port["protocol"] = self.pick("TCP", "UDP")
        return port

    def status(self, name: str) -> Json:
        status: Json = {"name": name, "image": "", "imageID": "", "ready": True, "restartCount": 0}
        if self.chance(0.6):
            status["allocatedResources"] = self.amounts(RESOURCES[:5])
        if self.chance(0.7):
            status["resources"] = self.resources()
        return status

    def pod(self) -> Json:
        self.wild = self.chance(0.3)
        names = [f"c{index}" for index in range(self.random.randint(1, 3))]
        init_names = [f"i{index}" for index in range(self.random.choice([0, 0, 1, 2, 3]))]
        init = [self.container(name) for name in init_names]
        for container in init:
            if self.chance(0.5):
                container["restartPolicy"] = "Always"
        spec: Json = {"containers": [self.container(name) for name in names], "initContainers": init}
        level = self.resources() if self.chance(0.35) else None
        if level is not None:
            spec["resources"] = level
        if self.chance(0.3):
            # Upstream adds the overhead to a pod-level request in place, again at each call, so there is no single
            # correct result.
            taken = level.get("requests", {}) if level is not None else {}
            assert isinstance(taken, dict)
            spec["overhead"] = {name: item for name, item in self.amounts(RESOURCES[:4]).items() if name not in taken}
        if self.chance(0.2):
            spec["hostNetwork"] = True
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": spec}
        if self.chance(0.4):
            pod["status"] = self.pod_status(names, init_names)
        return pod

    def pod_status(self, names: Iterable[str], init_names: Iterable[str]) -> Json:
        status: Json = {
            "containerStatuses": [self.status(name) for name in names if self.chance(0.8)],
            "initContainerStatuses": [self.status(name) for name in init_names if self.chance(0.8)],
            "conditions": self.several(2, self.condition) if self.chance(0.4) else [],
        }
        if self.chance(0.3):
            status["allocatedResources"] = self.amounts(RESOURCES[:3])
        if self.chance(0.4):
            status["resources"] = self.resources()
        return status

    def condition(self) -> Json:
        reason = self.pick("Infeasible", "Deferred", "")
        return {"type": self.pick("PodResizePending", "Ready"), "status": "True", "reason": reason}

    def requests(self) -> Json:
        return {"op": "requests", "pod": self.pod(), "podLevelResources": self.chance(0.8)}

    def default(self) -> Json:
        return {"op": "default", "object": self.pod()}

    # --- selectors ---

    def key(self) -> str:
        return self.one(KEYS if self.chance(0.9) else ODD_KEYS)

    def value(self) -> str:
        return self.one(VALUES if self.chance(0.85) else ODD_VALUES)

    def labels(self, most: int = 4) -> dict[str, str]:
        return {self.one(KEYS): self.value() for _ in range(self.random.randint(0, most))}

    def requirement(self, operators: Sequence[str] = OPERATORS) -> Json:
        operator = self.one(operators) if self.chance(0.95) else self.one(["Foo", "", "in", "<"])
        requirement: Json = {"key": self.key(), "operator": operator}
        count = self.random.choice([0, 1, 1, 1, 2, 3])
        if count and (operator not in ("Exists", "DoesNotExist") or self.chance(0.1)):
            requirement["values"] = [self.value() for _ in range(count)]
        return requirement

    def field_requirement(self) -> Json:
        requirement: Json = {
            "key": self.pick("metadata.name", "metadata.name", "metadata.foo"),
            "operator": self.pick("In", "NotIn", "In", "Exists"),
        }
        if values := [self.pick("n1", "n2", "") for _ in range(self.random.choice([1, 1, 1, 0, 2]))]:
            requirement["values"] = values
        return requirement

    def node_term(self) -> Json:
        term: Json = {}
        if self.chance(0.8):
            term["matchExpressions"] = self.several(2, self.requirement)
        if self.chance(0.3):
            term["matchFields"] = self.several(2, self.field_requirement)
        return term

    def node_affinity(self) -> Json:
        affinity: Json = {}
        if self.chance(0.8):
            terms = self.several(3, self.node_term)
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.chance(0.5):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = self.several(
                3, lambda: {"weight": self.pick(0, 1, 5, 100), "preference": self.node_term()}
            )
        spec: Json = {"containers": [], "affinity": {"nodeAffinity": affinity}}
        if self.chance(0.4):
            spec["nodeSelector"] = self.labels(2)
        node = {"metadata": {"name": self.pick("n1", "n2", ""), "labels": self.labels()}}
        return {"op": "nodeAffinity", "pod": {"metadata": {"name": "p"}, "spec": spec}, "node": node}

    def label_selector(self) -> Json:
        selector: Json = {}
        if self.chance(0.6):
            selector["matchLabels"] = {self.key(): self.value()} if self.chance(0.6) else {}
        if self.chance(0.7):
            selector["matchExpressions"] = self.several(2, lambda: self.requirement(OPERATORS[:4]))
        return {"op": "labelSelector", "selector": None if self.chance(0.05) else selector, "labels": self.labels()}

    def toleration(self) -> Json:
        toleration = {
            "key": self.pick("", "a", "b"),
            "operator": self.pick("", "Equal", "Exists", "Gt", "Lt", "Foo"),
            "value": self.value(),
            "effect": self.pick("", "NoSchedule", "NoExecute"),
        }
        effect = self.pick("NoSchedule", "NoExecute", "PreferNoSchedule")
        taint = {"key": self.pick("a", "b"), "value": self.value(), "effect": effect}
        return {"op": "toleration", "toleration": toleration, "taint": taint}


def main() -> None:
    """Run the generator and write the golden files."""
    generator = sys.argv[1]
    maker = Maker(20260731)
    files: dict[str, list[Json]] = {
        "quantities": [maker.quantity() for _ in range(4000)],
        "requests": [maker.requests() for _ in range(800)],
        "defaults": [maker.default() for _ in range(400)],
        "node_affinity": [maker.node_affinity() for _ in range(1000)],
        "label_selectors": [maker.label_selector() for _ in range(1000)],
        "tolerations": [maker.toleration() for _ in range(1000)],
    }
    for name, questions in files.items():
        text = "".join(json.dumps(question) + "\n" for question in questions)
        answers = subprocess.run(
            [generator], input=text, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        pairs = [
            {"question": question, "want": json.loads(answer)}
            for question, answer in zip(questions, answers, strict=True)
        ]
        write(name, pairs)
    fields = subprocess.run([generator, "fields"], capture_output=True, text=True, check=True).stdout.splitlines()
    write("fields", [json.loads(line) for line in fields])


def write(name: str, lines: Iterable[object]) -> None:
    """Write a golden file; the same lines give the same bytes."""
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines)
    (HERE / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
