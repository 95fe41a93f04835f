"""Who holds the host: known during a run, and afterwards only if it left something behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EngineError, KitError
from harness.process import Owner
from harness.runner.host_lock import hold_host
from harness.runtime.base import Command, RuntimeName
from harness.runtime.docker_engine import lost
from tests.conftest import Kit
from tests.in_process import Done, FixedClock, InProcessRuntime


class Breaks(InProcessRuntime):
    """A runtime in which the first server cannot be started, for a reason of any kind."""

    def __init__(self, error: BaseException, leftovers: BaseException | None = None) -> None:
        super().__init__()
        self.error = error
        self.leftovers = leftovers

    def start(self, command: Command, *, log: Path, owner: Owner) -> Done:
        if command.role == "server":
            assert holder(owner).exists()
            raise self.error
        return super().start(command, log=log, owner=owner)

    def end_leftovers(self, owner: Owner) -> int:
        if self.leftovers is not None:
            raise self.leftovers
        return 0


def holder(owner: Owner) -> Path:
    return Path(owner.run_id).parents[1] / "host.holder.json"


def broken(kit: Kit, runtime: InProcessRuntime) -> list[Path]:
    """Run until it breaks; return the holder files that are left."""
    kit.runtimes = {"local": runtime}
    kit.clock = FixedClock()
    with pytest.raises(BaseException):  # noqa: B017, PT011 - of any kind
        kit.run()
    return list(kit.folder.glob("host.holder.json"))


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), EngineError("made up", usually="", next_step=""), ValueError("a defect")],
    ids=lambda error: type(error).__name__,
)
def test_only_a_kill_leaves_the_holder_behind(kit: Kit, error: BaseException) -> None:
    assert broken(kit, Breaks(error)) == []


class Remembers(InProcessRuntime):
    """A runtime that records whose leftovers it was asked to end."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def end_leftovers(self, owner: Owner) -> int:
        self.ended.append(owner.run_id)
        return 1


@pytest.mark.parametrize("killed_in", ["local", "docker"])
def test_leftovers_of_a_kill_are_ended_in_their_own_runtime(
    kit: Kit, killed_in: RuntimeName
) -> None:
    runtimes: dict[RuntimeName, Remembers] = {"local": Remembers(), "docker": Remembers()}
    kit.runtimes, kit.clock = runtimes, FixedClock()
    killed = kit.site.reports / "killed"
    with hold_host(kit.site.lock) as lock:
        lock.describe(killed, killed_in)
        lock.leftovers = True
    assert kit.run().results.complete
    assert {name: runtime.ended for name, runtime in runtimes.items()} == {
        "local": [],
        "docker": [],
        killed_in: [str(killed)],
    }


def test_what_could_not_be_ended_is_ended_by_the_next_run(kit: Kit) -> None:
    assert len(broken(kit, Breaks(KeyboardInterrupt(), leftovers=lost("look")))) == 1
    runtime = Remembers()
    kit.runtimes = {"local": runtime}
    (first,) = kit.runs()
    assert kit.run(only=("server/128-8-c2",)).results.complete
    assert runtime.ended == [str(first)]
    assert list(kit.folder.glob("host.holder.json")) == []


def test_leftovers_that_cannot_be_ended_keep_the_host_from_being_used(kit: Kit) -> None:
    stays = Breaks(KeyboardInterrupt(), leftovers=lost("look"))
    assert len(broken(kit, stays)) == 1
    with pytest.raises(KitError, match="stopped answering"):
        kit.run(only=("server/128-8-c2",))
    assert len(list(kit.folder.glob("host.holder.json"))) == 1
