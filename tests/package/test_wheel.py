"""The wheel, installed outside the clone: everything that the kit needs comes with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import __version__
from harness.cli.main import main
from harness.suite.read import recipes_folder, suite_names
from tests.cli.test_main import command, environment
from tests.conftest import Kit

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[2]
PUBLISHED = "deepseek-v41-flash-8xb300"


@dataclass(frozen=True)
class Installed:
    """The kit in its own environment, and an empty folder to call it from."""

    environment: Path
    folder: Path

    def call(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **more}
        env.pop("PYTHONPATH", None)  # it can name the clone
        program = str(self.environment / "bin" / argv[0])
        return subprocess.run(
            [program, *argv[1:]],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ok(self, *argv: str, **more: str) -> str:
        done = self.call(*argv, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it; its dependencies come from these tests' environment."""
    work = tmp_path_factory.mktemp("package")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(work), str(ROOT))
    subprocess.run([*pip, *build], check=True)
    (wheel,) = work.glob("*.whl")
    environment = work / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    install = ("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    subprocess.run([*pip, *install], check=True)
    # Only now: the clone is installed there, and pip must not mistake it for the wheel.
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    folder = work / "empty"
    folder.mkdir()
    return Installed(environment, folder)


def test_it_runs_from_the_wheel(installed: Installed) -> None:
    assert installed.ok("b300-repro", "--version") == f"b300-repro {__version__}\n"
    where = installed.ok("python", "-c", "import harness; print(harness.__file__)")
    assert Path(where).is_relative_to(installed.environment)


def test_it_brought_every_suite_of_the_clone(installed: Installed) -> None:
    for suite in suite_names(recipes_folder()):
        assert installed.ok("b300-repro", "plan", suite)


@pytest.mark.parametrize("suite", ["smoke", PUBLISHED])
def test_its_plan_is_the_clones(
    installed: Installed, suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hash covers the recipes and, in the pins, every file that an image is made from."""
    assert main(["plan", suite, "--json"]) == 0
    ours, theirs = (
        json.loads(text)
        for text in (capsys.readouterr().out, installed.ok("b300-repro", "plan", suite, "--json"))
    )
    assert theirs == ours


def test_its_published_tables_are_the_clones(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["published", PUBLISHED]) == 0
    assert installed.ok("b300-repro", "published", PUBLISHED) == capsys.readouterr().out


def test_programs_of_docker_stay_executable(installed: Installed) -> None:
    show = "from harness.runtime.images import images_folder; print(images_folder())"
    theirs = Path(installed.ok("python", "-c", show).strip())
    ours = ROOT / "docker"
    programs = [path for path in ours.rglob("*.sh") if os.access(path, os.X_OK)]
    assert programs
    for program in programs:
        assert os.access(theirs / program.relative_to(ours), os.X_OK), program


def test_a_dry_run_copies_what_the_package_has_and_lands_here(installed: Installed) -> None:
    script = installed.ok("python", "-m", "harness", "plan", "smoke", "--dry-run")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    copies = [line.split() for line in script.splitlines() if line.startswith("cp ")]
    sources = {Path(part) for words in copies for part in words[1:-1] if not part.startswith("-")}
    package = {path for path in sources if path.is_relative_to(installed.environment)}
    assert {path.name for path in package} >= {"inside", "__init__.py"}
    assert all(path.exists() for path in package)
    assert f" {installed.folder / 'reports'}/" in script
    assert not list(installed.folder.iterdir())


def test_it_measures_a_suite_on_made_up_engines(installed: Installed, kit: Kit) -> None:
    """With the code of the package copied into the engines' environments, and no commit."""
    _, *arguments = command(kit, "run", "test")
    count, report = installed.ok("python", *arguments, **environment(kit)).splitlines()
    assert count == "4 of 4 cells measured"
    record = json.loads((Path(report).parent / "run.json").read_text())
    assert record["kit_version"] == __version__
    assert record["kit_commit"] is None


def test_schemas_are_written_in_a_clone_only(installed: Installed) -> None:
    done = installed.call("b300-repro", "schema")
    assert done.returncode == 2
    assert "can only be written in a clone" in done.stderr
    assert "Traceback" not in done.stderr
