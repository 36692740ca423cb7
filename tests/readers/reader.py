"""The requests of a reader while pods are scheduled, and the checks of each answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import httpx

Plain = dict[str, Any]

CPU_MILLI = 100
"""The CPU request of every pod, in milli-CPU."""

MEMORY_BYTES = 200 << 20


class Answered(NamedTuple):
    """An answer.

    Attributes:
        question: The kind of the request.
        seconds: The time from the request to the last byte of the answer.
        problem: The contradiction in the answer; empty if there is none.
    """

    question: str
    seconds: float
    problem: str


def contradiction_in_overview(document: Plain) -> str:
    """Return the contradiction between the counts of pods and the sums of their requests, or the empty string."""
    counts = document["counts"]
    others = sum(counts[name] for name in ("waiting", "gated", "terminating", "finished"))
    if counts["placed"] + others != counts["pods"]:
        return f"{counts}: pods are not placed and other ones together"
    requested = {row["resource"]: row["requested"] for row in document["utilisation"] if not row["zone"]}
    expected = {"cpu": CPU_MILLI * counts["placed"], "memory": MEMORY_BYTES * counts["placed"]}
    found = {name: requested[name] for name in expected}
    return "" if found == expected else f"{counts['placed']} placed pods request {expected}, the cluster says {found}"


def contradiction_in_nodes(document: Plain) -> str:
    """Return the contradiction between a node's requests and its number of pods, or the empty string."""
    for node in document["items"]:
        requested, allocatable, pods = node["requested"], node["allocatable"], node["pods"]
        # Resources that no pod requests are left out.
        expected = {"pods": pods, "cpu": CPU_MILLI * pods, "memory": MEMORY_BYTES * pods} if pods else {}
        if requested != expected:
            return f"{node['name']} has {pods} pods, which request {expected}, and says {requested}"
        if any(free != allocatable[name] - requested.get(name, 0) for name, free in node["free"].items()):
            return f"{node['name']}: free is not allocatable without requested"
    return ""


def contradiction_in_matrix(document: Plain) -> str:
    """Return the first contradiction between a matrix' totals and its scores, or the empty string."""
    if not document["recorded"]:
        return ""
    if sum(document["counts"].values()) != document["nodes"]:
        return f"{document['counts']} are not {document['nodes']} nodes"
    scored = [row for row in document["rows"] if row["weighted"] and row["total"] is not None]
    for row in scored:
        if sum(row["weighted"]) != row["total"]:
            return f"{row['node']}: the total of {row['weighted']} is not {row['total']}"
    best = {row["node"] for row in scored if row["total"] == max(each["total"] for each in scored)}
    if scored and best != set(document["tie_set"]):
        return f"the best nodes are {sorted(best)}, the tie set is {document['tie_set']}"
    if document["winner"] and document["tie_set"] and document["winner"] not in document["tie_set"]:
        return f"{document['winner']} is not among the best"
    return ""


def nothing(_: Plain) -> str:
    """Accept any answer."""
    return ""


class Reader:
    """A client that sends random read requests to a server.

    Args:
        address: The address of the server.
        seed: The seed of the choice of requests.

    Attributes:
        answers: The answers so far.
    """

    def __init__(self, address: str, seed: int) -> None:
        self._client = httpx.Client(base_url=address, timeout=60)
        self._random = Random(seed)
        self.answers: list[Answered] = []

    def ask(self) -> None:
        """Send one random request and record the answer."""
        questions: list[Callable[[], None]] = [self._overview, self._nodes, self._matrix, self._pod]
        self._random.choice(questions)()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _get(self, question: str, path: str, contradiction: Callable[[Plain], str]) -> Plain:
        before = time.monotonic()
        answer = self._client.get(path)
        seconds = time.monotonic() - before
        problem = f"{answer.status_code} {answer.text[:200]}" if answer.status_code != 200 else ""
        document: Plain = {} if problem else answer.json()
        self.answers.append(Answered(question, seconds, problem or contradiction(document)))
        return document

    def _overview(self) -> None:
        self._get("overview", "/bayplan/v1/overview", contradiction_in_overview)

    def _nodes(self) -> None:
        offset = self._random.randrange(100)
        self._get("nodes", f"/bayplan/v1/nodes?limit=100&offset={offset}", contradiction_in_nodes)

    def _matrix(self) -> None:
        decisions = self._get("decisions", "/bayplan/v1/decisions?limit=5", nothing).get("items", [])
        if not decisions:
            return
        one = self._random.choice(decisions)
        path = f"/bayplan/v1/pods/{one['namespace']}/{one['name']}/attempts/latest/matrix?limit=10000"
        self._get("matrix", path, contradiction_in_matrix)

    def _pod(self) -> None:
        decisions = self._get("decisions", "/bayplan/v1/decisions?limit=1", nothing).get("items", [])
        for one in decisions:
            self._get("pod of the Kubernetes API", f"/api/v1/namespaces/{one['namespace']}/pods/{one['name']}", nothing)
