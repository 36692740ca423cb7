"""The command ``replay``: replay a recording into a Bayplan server."""

import asyncio
import contextlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayplan.analysis.grouped_problems import group_messages
from bayplan.base.errors import InputError
from bayplan.cli.sync_options import (
    DEFAULT_TO,
    Reschedule,
    SourceVolumes,
    To,
    UpdateScheduled,
    duration_seconds,
    print_outcome,
    show_status,
    sync_policy,
    target_options,
)

if TYPE_CHECKING:
    from bayplan.sync.playback_clock import PlaybackClock


def replay(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Recording of bayplan or kube-scheduler-simulator, or SimKube trace."),
    ],
    to: To = DEFAULT_TO,
    speed: Annotated[
        str, typer.Option(metavar="X", help="Playback speed; 1 is real time, inf is as fast as possible.")
    ] = "1",
    seek: Annotated[
        str, typer.Option(metavar="TIME", help="Position to start from, such as 5m. [default: the beginning]")
    ] = "",
    paused: Annotated[bool, typer.Option("--paused", help="Start with playback paused.")] = False,
    reschedule: Reschedule = False,
    update_scheduled: UpdateScheduled = False,
    source_volumes: SourceVolumes = False,
) -> None:
    """Replay a recording into a Bayplan server.

    Changes are applied with their recorded timing, scaled by --speed. Standard input takes one command per line: pause, resume,
    speed X, seek TIME, where (prints the position). For a SimKube trace, the workloads are applied, and Bayplan's controllers
    create the pods. Start the server with bayplan up first.

    Example: bayplan replay monday.jsonl.gz --speed 60
    """
    from bayplan.app.cluster_sync import ApplyResult, ReplayOptions, replay_recording

    options = ReplayOptions(
        path=path,
        here=target_options(to),
        policy=sync_policy(
            None, "", reschedule=reschedule, update_scheduled=update_scheduled, source_volumes=source_volumes
        ),
        speed=_speed(speed),
        start_ns=int(duration_seconds(seek, "--seek") * 1e9) if seek else 0,
        paused=paused,
        steer=_steer,
    )
    outcome = replay_recording(options, show_status())
    if isinstance(outcome, ApplyResult):
        print(f"{outcome.applied:,} applied, {outcome.deleted:,} deleted")
        messages = [problem.partition(": ")[::2] for problem in outcome.problems]
        groups = group_messages((what, what.rpartition("/")[2], message) for what, message in messages)
        for line in groups.lines():
            print(f"not applied: {line}")
    else:
        print_outcome(outcome)


def _speed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError("speed", got=repr(text), wanted="a number", hint="10 or inf") from None


async def _steer(playback: "PlaybackClock") -> None:
    """Execute commands from standard input until it ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        # Read on a thread, because standard input may be a terminal, a pipe or a file, and not all of them support
        # asynchronous reads.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            for line in sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            _command(playback, (await lines.get()).split())
        except InputError as problem:
            print(f"bayplan: {problem}", file=sys.stderr)


def _command(playback: "PlaybackClock", words: list[str]) -> None:
    """Execute one command line from standard input.

    Raises:
        InputError: there is no such command.
    """
    match words:
        case ["pause"]:
            playback.pause()
        case ["resume"]:
            playback.resume()
        case ["speed", text]:
            playback.set_speed(_speed(text))
        case ["seek", text]:
            playback.seek(int(duration_seconds(text, "seek") * 1e9))
        case ["where"]:
            state = "paused" if playback.paused else f"speed {playback.speed:g}"
            print(f"{playback.position_ns / 1e9:,.1f} s, {state}", file=sys.stderr)
        case []:
            pass
        case _:
            wanted = "pause, resume, speed X, seek TIME or where"
            raise InputError("command", got=repr(" ".join(words)), wanted=wanted)
