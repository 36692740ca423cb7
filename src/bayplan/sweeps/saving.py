"""Write result directories for the best parameter sets of a sweep, for reports.

Their trials run again in this process. Input, parameters and seed determine a run, so the sweep need not keep the
records of all trials, and its workers need no shared disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bayplan.base.errors import InputError
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.space import Parameters
from bayplan.sweeps.store import RESULTS, SweepFolder
from bayplan.sweeps.sweep import Candidate, Progress
from bayplan.sweeps.trials import read_shared_input, run_trial

MAX_NAME_BYTES = 200
"""Maximum length of the folder name of a candidate; file systems allow 255 bytes."""


def save_results(
    plan: SweepPlan, folder: Path, candidates: Sequence[Candidate], progress: Progress | None = None
) -> Iterator[Path]:
    """Write a result directory ``results/LABEL/seed-SEED`` for each trial of some candidates; yield the paths.

    Args:
        plan: the plan of the sweep.
        folder: the folder of the sweep.
        candidates: the candidates to write; those that could not run are left out.
        progress: called after each trial.

    Raises:
        InputError: a trial decides differently than in the sweep: the input or the version of Bayplan has changed.
    """
    done = SweepFolder(folder, plan).done
    scored = [each for each in candidates if each.score is not None]
    labels = {each.number: _folder_name(each) for each in scored}
    wanted = [
        (outcome, labels[each.number])
        for each in scored
        for _, outcome in sorted(done.items())
        if outcome.trial.candidate == each.number
    ]
    shared = read_shared_input(plan)
    for finished, (outcome, name) in enumerate(wanted, 1):
        out = folder / RESULTS / name / f"seed-{outcome.trial.seed}"
        again = run_trial(plan, shared, outcome.trial, out)
        if again.digest != outcome.digest:
            what, hint = (
                f"digest of trial {outcome.trial.number}",
                "another --out: the input or the version has changed",
            )
            raise InputError(what, got=again.digest or again.error, wanted=outcome.digest, hint=hint)
        if progress is not None:
            progress(finished, len(wanted))
        yield out


def label(parameters: Parameters) -> str:
    """Return parameters as text for a file name. Each name is shortened to the end that distinguishes it from the others."""
    names = _short_names(parameters)
    text = ", ".join(f"{names[name]}={value}" for name, value in parameters.items())
    return text.replace("/", "-")


def _folder_name(candidate: Candidate) -> str:
    """Return the label of a candidate, or if it is too long for a file name, its start and the candidate's number."""
    name = label(candidate.parameters)
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    return f"{name.encode()[: MAX_NAME_BYTES // 2].decode(errors='ignore')}..., set {candidate.number}"


def _short_names(parameters: Mapping[str, object]) -> dict[str, str]:
    found = {}
    for name in parameters:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            short = ".".join(parts[-count:])
            if sum(other == name or other.endswith(f".{short}") for other in parameters) == 1:
                break
        found[name] = short
    return found
