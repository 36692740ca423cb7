"""Random behaviour of plugins, cluster and host: each pod is in one place, and no reservation is left over."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.engine.scheduler import Scheduler
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from tests.live.hosts import Cluster, make_faulty_plugin

METHODS = (
    "pre_enqueue", "sign_pod", "compile", "pre_filter", "filter", "reasons", "post_filter", "pre_score", "score", "scale",
    "normalize", "reserve", "unreserve", "permit", "pre_bind", "bind", "post_bind",
)  # fmt: skip
NAMES = ("a", "b", "bad-1", "bad-2", "bad-3", "big")
STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(NAMES)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("node"), st.sampled_from(("n0", "n1", "n2"))),
    st.tuples(st.just("drop node"), st.sampled_from(("n0", "n1", "n2"))),
    st.tuples(st.just("mood"), st.sampled_from(("raise", "nonsense", "well"))),
    st.tuples(st.just("refuse"), st.sampled_from(NAMES)),
    st.tuples(st.just("pass"), st.sampled_from(("1", "15", "400"))),
    st.tuples(st.just("replace"), st.just("")),
)


def play(cluster: Cluster, plugin: type, step: tuple[str, str]) -> None:
    what, name = step
    pod, node = cluster.objects.get(f"Pod default/{name}"), cluster.objects.get(f"Node {name}")
    if what == "add" and pod is None:
        amounts = {"cpu": "3"} if name == "big" else {"cpu": "1"}
        uid = f"{name}-{len(cluster.actions)}-{len(cluster.decisions)}"
        cluster.add(make_pod(name).uid(uid).priority(10 if name == "big" else 0).req(amounts).obj())
    elif what == "delete" and pod is not None:
        cluster.delete(pod)
    elif what == "node":
        cluster.add(make_node(name).capacity(cpu="3", memory="8Gi", pods="4").obj())
    elif what == "drop node" and node is not None:
        for item in [it for it in cluster.objects.values() if isinstance(it, Pod) and it.spec.node_name == name]:
            cluster.delete(item)
        cluster.delete(node)
    elif what == "mood":
        plugin.how = name  # type: ignore[attr-defined]
    elif what == "refuse":
        cluster.refuses ^= {f"default/{name}"}
    elif what == "pass":
        cluster.pass_seconds(float(name))
    elif what == "replace":
        cluster.host.replace(cluster.make)


@settings(max_examples=150)
@given(at=st.sampled_from(METHODS), steps=st.lists(STEPS, min_size=5, max_size=40))
def test_random_plugin_failures_lose_no_pod_and_leave_no_reservation(at: str, steps: list[tuple[str, str]]) -> None:
    plugin = make_faulty_plugin(at, "raise")
    cluster = Cluster(plugin)
    cluster.add(make_node("n0").capacity(cpu="3", memory="8Gi", pods="4").obj())
    for step in steps:
        play(cluster, plugin, step)
        cluster.run()
        cluster.check()
    assert not cluster.host.status().engine_failures
    # If no plugin misbehaves any more, every pod that fits gets a node.
    plugin.how = "well"
    cluster.refuses.clear()
    cluster.add(*(make_node(f"m{number}").capacity(cpu="8", memory="8Gi", pods="9").obj() for number in range(2)))
    cluster.pass_seconds(700)
    cluster.check()
    assert all(cluster.nodes_of().values())

    def nothing_is_left(scheduler: Scheduler) -> None:
        assert len(scheduler.queue) == 0
        assert not scheduler.queue.in_flight()
        assert not scheduler.queue.nominator.node_by_uid

    cluster.host.call(nothing_is_left)
    records = [*cluster.decisions]
    assert [record.attempt for record in records if record.pod == "default/a"] == sorted(
        record.attempt for record in records if record.pod == "default/a"
    ) or any(step[0] == "delete" for step in steps)
