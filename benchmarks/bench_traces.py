"""Readers of traces: throughput and peak memory of a process that reads a generated file and keeps 100,000 pods.

The files are written before the measurement, with fixed seeds, in the formats of the published traces: 100,000 rows in
no order of time, repeated under new names.
`python -m benchmarks.bench_traces FORMAT BYTES` measures one reader.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks import Figure
from benchmarks.processes import peak_of, run_process

SIZES = {"small": 300_000, "large": 2_000_000_000}
"""The size of each file in bytes."""

LIMIT = 100_000
_BATCH = 100_000
_BLOCK = "@"
"""Placeholder in the rows of a batch, replaced by the batch's number each time the batch is written again."""

_DAY_S = 86_400

Lines = Callable[[Random, int], str]


def _alibaba_2017(random: Random, number: int) -> str:
    start = random.randrange(1, _DAY_S)
    cpu, memory = random.choice((50, 100, 200)), random.choice(("0.005404705821447985", "0.01280062905180261"))
    end, instances = start + random.randrange(1, 4000), random.randrange(1, 9)
    return f"{start},{end},{_BLOCK}{number // 3},{_BLOCK}{number},{instances},Terminated,{cpu},{memory}\n"


def _alibaba_2018(random: Random, number: int) -> str:
    start = random.randrange(1, 8 * _DAY_S)
    end, cpu = start + random.randrange(1, 4000), random.choice((50, 100, 200))
    memory = random.choice(("0.3", "0.39", "0.59"))
    return f"M{number % 3},{random.randrange(1, 9)},j_{_BLOCK}{number // 3},1,Terminated,{start},{end},{cpu},{memory}\n"


def _alibaba_gpu_2020(random: Random, number: int) -> str:
    start = random.randrange(1, 60 * _DAY_S)
    cpu, gpu = random.choice((600, 400)), random.choice(("", "25.0", "50.0", "100.0", "800.0"))
    job, end = f"{_BLOCK}{number // 2:020x}", start + random.randrange(1, 90_000)
    return f"{job},worker{number % 2},{random.randrange(1, 5)}.0,Terminated,{start}.0,{end}.0,{cpu}.0,29.296875,{gpu},MISC\n"


def _openb(random: Random, number: int) -> str:
    start = random.randrange(0, 149 * _DAY_S)
    end, milli = start + random.randrange(60, 90_000), random.choice((460, 1000))
    return f"openb-pod-{_BLOCK}{number:06},{random.choice((8000, 12000))},30720,1,{milli},,LS,Running,{start},{end},{start + 5}\n"


def _borg(random: Random, number: int) -> str:
    # Three events of one instance: submitted, scheduled, finished.
    instance, step = divmod(number, 3)
    base = instance * 7919 % (31 * _DAY_S) * 1_000_000
    when, kind = base + (0, 3_000_000, 900_000_000)[step], (0, 3, 6)[step]
    machine = "" if not step else f'"machine_id":"{23624491139 + instance % 9000}",'
    share = (0.0206604, 0.00839233398, 0.0479125)[instance % 3]
    return (
        f'{{"time":"{when}","type":"{kind}","collection_id":"{_BLOCK}{30587238 + instance // 4}","scheduling_class":"2",'
        f'"collection_type":"0","priority":"{(25, 103, 200)[instance % 3]}","instance_index":"{instance % 4}",{machine}'
        f'"resource_request":{{"cpus":{share},"memory":0.0144348145}},"constraint":[]}}\n'
    )


def _philly(random: Random, number: int) -> str:
    start = random.randrange(0, 130 * _DAY_S)
    gpus = ", ".join(f'"gpu{each}"' for each in range(random.choice((1, 1, 2, 4, 8))))

    def text(second: int) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_502_064_000 + second))

    end = text(start + random.randrange(31, 90_000))
    return (
        f'    {{\n        "status": "Pass",\n        "vc": "ee9e8c",\n'
        f'        "jobid": "application_{_BLOCK}{number}",\n        "attempts": [\n            {{\n'
        f'                "start_time": "{text(start + 30)}",\n                "end_time": "{end}",\n'
        f'                "detail": [\n                    {{\n                        "ip": "m{number % 500}",\n'
        f'                        "gpus": [{gpus}]\n                    }}\n                ]\n            }}\n        ],\n'
        f'        "submitted_time": "{text(start)}",\n        "user": "ce2f4c"\n    }},\n'
    )


OPENB_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
FILES: Mapping[str, tuple[str, Lines, str]] = {
    "alibaba-2017": ("batch_task.csv", _alibaba_2017, ""),
    "alibaba-2018": ("batch_task.csv", _alibaba_2018, ""),
    "alibaba-gpu-2020": ("pai_task_table.csv", _alibaba_gpu_2020, ""),
    "openb": ("tasks.csv", _openb, OPENB_HEADER),
    "google-borg-2019": ("instance_events.json", _borg, ""),
    "philly": ("cluster_job_log", _philly, "[\n"),
}
"""File name, function for a row, and head of the file, for each text format."""

FORMATS = (*FILES, "azure-packing-2020")


def write_file(folder: Path, kind: str, size: int) -> tuple[Path, int]:
    """Write a file of about `size` bytes; return its path and the number of rows."""
    if kind not in FILES:
        return _write_database(folder / "packing.sqlite", size)
    name, line, head = FILES[kind]
    random, path, batches, count = Random(1), folder / name, 0, min(_BATCH, size // 60)
    batch = "".join([line(random, each) for each in range(count)])
    with path.open("w", encoding="utf-8") as file:
        written = file.write(head)
        while written < size:
            batches += 1
            written += file.write(batch.replace(_BLOCK, str(1000 + batches)))
        if kind == "philly":
            # The JSON list must end without a comma.
            file.write("    {}\n]\n".format(batch[: batch.index("},\n    {") + 1].strip().replace(_BLOCK, "0")))
    return path, batches * count


def _write_database(path: Path, size: int) -> tuple[Path, int]:
    random, rows = Random(1), []
    for number in range(min(_BATCH, size // 60)):
        start = random.uniform(-20, 14)
        end = None if number % 9 == 0 else start + random.uniform(0.01, 40)
        rows.append((number, number // 5, number % 200, number % 2, start, end))
    types = [(each, each, 0, (1 + each % 8) / 48, (1 + each % 6) / 64, None, 0.01, 0.02) for each in range(200)]
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        database.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        database.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", types)
        batches = 0
        while not batches or path.stat().st_size < size:
            if not batches:
                database.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", rows)
            else:
                given = {"shift": batches * len(rows), "count": len(rows)}
                columns = "vmId + :shift, tenantId + :shift / 5, vmTypeId, priority, starttime, endtime"
                database.execute(f"INSERT INTO vm SELECT {columns} FROM vm WHERE rowid <= :count", given)
            database.commit()
            batches += 1
    return path, batches * len(rows)


def read_file(path: str, limit: int = LIMIT) -> None:
    """Read a file as `bayplan simulate` does, and print the pods, CPU seconds and peak memory before and after."""
    from bayplan.formats.files import InputFile
    from bayplan.formats.traces.reader import ReadOptions
    from bayplan.formats.traces.reading import detect_table, read_trace
    from bayplan.formats.traces.selection import Selection

    file = InputFile(path, Path(path))
    table = detect_table(file)
    if table is None:
        raise ValueError(f"expected a table of a trace, got {path}")
    gc.disable()
    before, start = peak_of(), time.process_time()
    trace = read_trace([(file, table)], ReadOptions(selection=Selection(limit=limit)))
    print(len(trace.pods), time.process_time() - start, before, peak_of())


def figures_of(kind: str, size: int) -> Iterator[Figure]:
    """Yield throughput and peak memory of the reader of one format."""
    with TemporaryDirectory() as folder:
        path, rows = write_file(Path(folder), kind, size)
        found = path.stat().st_size
        ended = run_process([sys.executable, "-m", "benchmarks.bench_traces", "--read", str(path)])
    pods, seconds, before, peak = (float(text) for text in ended.stdout.split())
    name = f"{kind}, {found / 1e6:,.0f} MB"
    note = f"{rows / seconds:,.0f} rows/s, {seconds:.1f} s of processor time, {pods:,.0f} pods kept"
    yield Figure(name=name, value=found / 1e6 / seconds, unit="MB/s", note=note)
    yield Figure(name=f"{name}, peak memory", value=peak / 1e6, unit="MB", note=f"{before / 1e6:.0f} MB before")


def figures(size: str) -> Iterator[Figure]:
    """Yield throughput and peak memory of every reader."""
    for kind in FORMATS:
        yield from figures_of(kind, SIZES[size])


if __name__ == "__main__":
    if sys.argv[1] == "--read":
        read_file(sys.argv[2])
    else:
        for figure in figures_of(sys.argv[1], int(float(sys.argv[2]))):
            print(figure, flush=True)
