"""Open the folder of a sweep: begin its record, or go on with it and add what is new in the sweep file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import exists
from atari_dqn.files.failures import writing
from atari_dqn.machine.automatic import Choice
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.leases.links import check_links
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member, SweepRecord, read_record, write_record
from atari_dqn.scale.auto_values import machine_share, merge_choices, resolve_variant
from atari_dqn.scale.axes import threads_problem
from atari_dqn.scale.members import DIGEST_DIGITS, Sweep, named_faults
from atari_dqn.scale.record_lock import locked_to_change
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.keys import AUTO_KEYS, Scalar


@dataclass(frozen=True, kw_only=True)
class OpenedSweep:
    """A sweep with its folder and its record, which `open_sweep` writes and `plan_sweep` does not."""

    folder: SweepFolder
    record: SweepRecord
    choices: tuple[Choice, ...] = ()
    """The `auto` keys that were resolved now."""


def plan_sweep(sweep: Sweep, path: Path, *, device: str, hardware: Hardware) -> OpenedSweep:
    """Return the record that a sweep would have in a folder, without writing anything.

    `device`: `cpu` or `cuda`. `UserError` if the folder belongs to something else, or was begun with another
    device or number of threads. `SpecError` if a method has another number of threads than the sweep.
    """
    folder = SweepFolder(path)
    before = _record_of(folder, sweep)
    if before is not None:
        _check_unchanged(before, sweep, device, folder)
    has_begun = _beginnings(folder)
    known = () if before is None else (*before.members, *before.former)
    begun = {member.label for member in known if has_begun(member.name)}
    _check_threads(sweep, begun)
    recorded = {} if before is None else _recorded(before, begun, threads=sweep.threads, device=device)
    machine = machine_share(threads=sweep.threads, device=device, hardware=hardware)
    resolved = [
        resolve_variant(variant, recorded.get(variant.label, {}), machine) for variant in sweep.variants
    ]
    members = replace(sweep, variants=tuple(variant for variant, _ in resolved)).members()
    members, former = _merged(known, members, has_begun)
    record = SweepRecord(
        name=sweep.name,
        device=device,
        threads=sweep.threads,
        members=tuple(members),
        former=tuple(former),
    )
    return OpenedSweep(folder=folder, record=record, choices=merge_choices(resolved))


def open_sweep(sweep: Sweep, path: Path, *, device: str, hardware: Hardware) -> OpenedSweep:
    """Begin the sweep in a folder, or go on with it; its record is on disk afterwards."""
    # Raises before a folder is created. Planned again under the lock: another command may change the record.
    plan_sweep(sweep, path, device=device, hardware=hardware)
    folder = SweepFolder(path)
    with writing(path):
        folder.create()
    check_links(folder.leases.path)
    with locked_to_change(folder):
        opened = plan_sweep(sweep, path, device=device, hardware=hardware)
        write_record(folder.record, opened.record)
    return opened


def reopen_sweep(path: Path) -> OpenedSweep:
    """Open a folder whose sweep has begun, without its sweep file."""
    folder = SweepFolder(path)
    record = read_record(folder.record)
    with writing(path):
        folder.create()
    return OpenedSweep(folder=folder, record=record)


def _record_of(folder: SweepFolder, sweep: Sweep) -> SweepRecord | None:
    """Return the record of a folder, None before the sweep begins; `UserError` if it holds anything else."""
    path = folder.path
    if not exists(path):
        return None
    if not path.is_dir():
        raise UserError(f"{path}: is not a folder; name another with --folder")
    if not exists(folder.record):
        if any(entry.name != folder.own.name for entry in path.iterdir()):
            raise UserError(
                f"{path}: holds other files; a sweep begins in a folder of its own: name one with --folder"
            )
        return None
    record = read_record(folder.record)
    if record.name != sweep.name:
        raise UserError(
            f"{path}: holds the sweep {record.name}, not {sweep.name}; name another with --folder"
        )
    return record


def _check_unchanged(before: SweepRecord, sweep: Sweep, device: str, folder: SweepFolder) -> None:
    """Refuse another type of device or number of threads, which change the rounding of results."""
    check_device(before, device, folder)
    _check_same(before, folder, "threads", before.threads, sweep.threads)


def check_device(before: SweepRecord, device: str, folder: SweepFolder) -> None:
    """Raise `UserError` if runs of a sweep have begun on another type of device, which rounds differently."""
    _check_same(before, folder, "device", before.device, device)


def _check_same(record: SweepRecord, folder: SweepFolder, what: str, began: object, found: object) -> None:
    if began != found and any(folder.has_begun(member.name) for member in record.members):
        raise UserError(
            f"{folder.path}: its runs began with {what} {began}, found {found}, with which results are "
            "rounded differently; keep it, or name another folder with --folder"
        )


def _check_threads(sweep: Sweep, begun: Collection[str]) -> None:
    """Refuse another number of threads than the sweep's, except in methods of which runs have begun."""
    labels: dict[Fault, list[str]] = {}
    for variant in sweep.variants:
        problem = threads_problem(variant.values, sweep.threads)
        if problem is not None and variant.label not in begun:
            fault = Fault(str(sweep.path), "learner.threads", problem)
            labels.setdefault(fault, []).append(variant.label)
    if labels:
        raise SpecError(list(named_faults(labels, total=len(sweep.variants))))


def _recorded(
    before: SweepRecord, begun: Collection[str], *, threads: int, device: str
) -> dict[str, dict[str, Scalar]]:
    """Return the recorded values of the members' `auto` keys, by label; no later machine changes them.

    If the number of threads or the device differs from the record's, they are kept only for labels of which a
    run has begun.
    """
    is_same = (before.threads, before.device) == (threads, device)
    found: dict[str, dict[str, Scalar]] = {}
    for member in (*before.members, *before.former):
        # more threads than the sweep's are no choice of `auto`: the sweep file had them
        fits = is_same and int(member.values.get("learner.threads", threads)) <= threads
        if fits or member.label in begun:
            values = {key: member.values[key] for key in AUTO_KEYS if key in member.values}
            found.setdefault(member.label, values)
    return found


def _beginnings(folder: SweepFolder) -> Callable[[str], bool]:
    """Return a function that says whether a run has begun, or is being begun by another command."""
    leases = folder.leases.current().values()
    leased = {lease.name for lease in leases if not lease.owner.has_ended}
    return lambda name: name in leased or folder.has_begun(name)


def _merged(
    known: Sequence[Member], members: Sequence[Member], has_begun: Callable[[str], bool]
) -> tuple[list[Member], list[Member]]:
    """Match the members of a sweep file with the record; return the members and the former members.

    `known`: the members in the record. A known member keeps its recorded name, even if it has not begun. If
    the name of a new member is in use, its digest is appended. Former members have begun, and are no longer
    in the sweep file.
    """
    by_digest = {member.digest: member for member in known}
    began = {member.name for member in known if has_begun(member.name)}
    present = {member.digest for member in members}
    taken = began | {member.name for member in known if member.digest in present}
    found = [_named(member, by_digest.get(member.digest), began, taken) for member in members]
    former = [member for member in known if member.digest not in present and member.name in began]
    return found, former


def _named(member: Member, known: Member | None, began: set[str], taken: set[str]) -> Member:
    if known is not None:
        return known if known.name in began else replace(member, name=known.name)
    if member.name in taken:
        return replace(member, name=f"{member.name}_{member.digest[:DIGEST_DIGITS]}")
    return member
