"""``python -m tests.building.arm64``: check Go's arithmetic on an emulated arm64. Needs ziglang, qemu-user."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from building.modules import ROOT, SOURCE

from tests.building.recorded import RESULTS_HASHES

PROGRAM = Path(__file__).with_name("go_arithmetic_program.c")
FLAGS = ("-O3", "-fwrapv", "-ffp-contract=off", "-target", "aarch64-linux-musl")


def main() -> int:
    """Return 0 if all hashes are the recorded ones, 1 if one differs, 2 if the emulator is missing."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if emulator is None:
        print("qemu-aarch64 is missing (on Debian: apt-get install qemu-user-static)", file=sys.stderr)
        return 2
    target = ROOT / "build" / "go_arithmetic_arm64"
    target.parent.mkdir(exist_ok=True)
    zig = [sys.executable, "-m", "ziglang", "cc"]
    subprocess.run([*zig, *FLAGS, f"-I{SOURCE}", str(PROGRAM), "-o", str(target), "-lm"], check=True)
    counts = [str(count) for count in RESULTS_HASHES]
    done = subprocess.run([emulator, str(target), *counts], capture_output=True, text=True, check=True)
    found = dict(zip(RESULTS_HASHES, map(int, done.stdout.split()), strict=True))
    print(f"arm64: {found}; recorded: {RESULTS_HASHES}")
    return 0 if found == RESULTS_HASHES else 1


if __name__ == "__main__":
    sys.exit(main())
