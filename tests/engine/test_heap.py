"""The heap of pods: order, removal, and entries that removal leaves behind."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.heap import PodHeap
from bayplan.engine.queued_pod import QueuedPod
from tests.engine.queue_pods import pod

POD = pod("p")


def records(count: int) -> list[QueuedPod]:
    return [QueuedPod(POD, f"default/p{number}", f"uid-{number}", number, 0) for number in range(count)]


def drain(heap: PodHeap) -> list[int]:
    popped = []
    while (queued := heap.pop()) is not None:
        assert queued.key not in heap
        popped.append(queued.sequence)
    return popped


def test_pods_are_popped_by_key_then_by_sequence() -> None:
    heap = PodHeap()
    for queued, key in zip(records(5), (3, 1, 2, 1, 3), strict=True):
        heap.push(queued, key)
    assert [each.sequence for each in heap] == [1, 3, 2, 0, 4]
    assert len(heap) == 5
    assert drain(heap) == [1, 3, 2, 0, 4]
    assert heap.peek() is None


def test_a_discarded_pod_is_not_popped() -> None:
    heap = PodHeap()
    pods = records(3)
    for queued in pods:
        heap.push(queued, queued.sequence)
    assert heap.discard(pods[0].key)
    assert not heap.discard(pods[0].key)
    assert heap.peek() is pods[1]
    assert (len(heap), heap.get(pods[0].key), heap.get(pods[1].key)) == (2, None, pods[1])
    assert drain(heap) == [1, 2]


def test_a_pod_pushed_again_with_the_same_key_is_popped_once() -> None:
    heap = PodHeap()
    [queued, other] = records(2)
    key = (1, 2)
    heap.push(queued, key)
    heap.push(other, (9, 9))
    heap.discard(queued.key)
    heap.push(queued, key)
    assert [each.sequence for each in heap] == [0, 1]
    assert drain(heap) == [0, 1]


def test_a_reordered_pod_is_popped_at_its_new_position() -> None:
    heap = PodHeap()
    pods = records(3)
    for queued in pods:
        heap.push(queued, queued.sequence)
    heap.push(pods[2], -1)
    heap.push(pods[1], 1)
    assert drain(heap) == [2, 0, 1]


def test_pods_that_are_pushed_in_order_need_no_heap() -> None:
    heap = PodHeap()
    pods = records(6)
    for queued in pods[:3]:
        heap.push(queued, queued.sequence)
    assert len(heap._heap) == 0
    heap.push(pods[3], 1)
    assert len(heap._heap) == 1
    heap.push(pods[4], 4)
    assert len(heap._heap) == 1
    assert drain(heap) == [0, 1, 3, 2, 4]


def test_discarded_entries_are_compacted() -> None:
    heap = PodHeap()
    pods = records(1000)
    for queued in pods:
        heap.push(queued, queued.sequence)
    for queued in pods[10:]:
        heap.discard(queued.key)
    assert len(heap._heap) + len(heap._in_order) <= 2 * len(heap) + 64
    assert drain(heap) == list(range(10))


def test_entries_of_pods_that_are_pushed_again_are_compacted() -> None:
    heap = PodHeap()
    pods = records(3)
    for step in range(1000):
        heap.push(pods[step % 3], step)
    assert len(heap._heap) + len(heap._in_order) <= 2 * len(heap) + 65
    assert drain(heap) == [1, 2, 0]


@given(seed=st.integers(0, 2**32), size=st.sampled_from((3, 100, 400)), spread=st.sampled_from((1, 5, 10**9)))
def test_random_pushes_pops_and_removals_match_sorting(seed: int, size: int, spread: int) -> None:
    random = Random(seed)
    heap, inside = PodHeap(), dict[int, tuple[int, int]]()
    pods = records(size)
    for step in range(3 * size):
        queued = random.choice(pods)
        if queued.sequence not in inside:
            # Like times, most keys are larger than the previous ones.
            key = random.choice((step, step, random.randrange(spread)))
            heap.push(queued, key)
            inside[queued.sequence] = (key, queued.sequence)
        elif random.random() < 0.3:
            heap.discard(queued.key)
            del inside[queued.sequence]
        elif random.random() < 0.3:
            key = random.randrange(spread)
            heap.push(queued, key)
            inside[queued.sequence] = (key, queued.sequence)
        if random.random() < 0.3:
            first = min(inside.values(), default=None)
            assert (heap.peek() is None) == (first is None)
            popped = heap.pop()
            assert (popped and popped.sequence) == (first and first[1])
            if first is not None:
                del inside[first[1]]
        assert len(heap) == len(inside)
    order = [number for _, number in sorted(inside.values())]
    assert [each.sequence for each in heap] == order
    assert drain(heap) == order
