"""The command line as a user meets it: first lines, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.conftest import Kit
from tests.suite.test_plan import planned

ROOT = Path(__file__).parents[2]

# The command line on fake engines: only its folders are replaced.
ON_FAKES = """
import sys
from pathlib import Path
import harness.cli.main as cli
import harness.cli.verbs as verbs
folder = Path({folder!r})
verbs.recipes_folder = lambda: folder / "recipes"
verbs.images_folder = lambda: folder / "docker"
verbs.reports_folder = lambda: folder / "reports"
sys.exit(cli.main(sys.argv[1:]))
"""


def command(kit: Kit, *arguments: str) -> list[str]:
    kit.write_suite()
    return [sys.executable, "-c", ON_FAKES.format(folder=str(kit.folder)), *arguments]


def environment(kit: Kit) -> dict[str, str]:
    return {**os.environ, "B300_REPRO_CACHE": str(kit.site.cache), "TMPDIR": str(kit.folder)}


def call(kit: Kit, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(kit, *arguments),
        env=environment(kit),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_run_prints_the_report_on_stdout_and_progress_on_stderr(kit: Kit) -> None:
    done = call(kit, "run", "test")
    assert done.returncode == 0, done.stderr
    count, report = done.stdout.splitlines()
    assert count == "4 of 4 cells measured"
    assert Path(report).read_text().startswith("# A test suite: measured")
    lines = done.stderr.splitlines()
    assert lines[1] == "Suite test: A test suite, 4 cells, runtime local."
    assert lines[2] == "Nothing here was measured."
    assert "> server/128-8-c2/r1, about 1 s" in lines
    again = call(kit, "run", "test")
    assert again.stdout == done.stdout
    assert "already been measured on this host" in again.stderr


def test_cell_without_a_number_is_exit_1(kit: Kit) -> None:
    kit.fault(bench={"cells/server/128-8-c2": "no-result"})
    done = call(kit, "run", "test")
    assert done.returncode == 1
    assert done.stdout.startswith("3 of 4 cells measured\n")
    again = call(kit, "run", "test")
    assert again.returncode == 1
    assert "3 of 4 cells were measured; --retry-failed measures the others" in again.stderr
    kit.heal()
    assert call(kit, "run", "test", "--retry-failed").returncode == 0


def test_engine_that_does_not_start_is_exit_5_with_three_parts(kit: Kit) -> None:
    kit.fault(serve="dies-loading")
    done = call(kit, "run", "test")
    assert done.returncode == 5
    message = done.stderr[done.stderr.rindex("error:") :]
    assert [line.split(":")[0] for line in message.splitlines() if not line.startswith(" ")] == [
        "error",
        "usually",
        "next",
    ]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "smok"], 2, "unknown suite 'smok', did you mean 'smoke'?"),
        (["plan", "smoke", "--suite", "other"], 2, "two suites were named"),
        (["plan", "smoke", "--only", "vlm"], 2, "did you mean 'vllm'?"),
        (["report", "/nowhere"], 2, "/nowhere is not a run directory: it has no run.json"),
        (
            ["plan", "deepseek-v41-flash-8xb300", "--runtime", "local"],
            2,
            "these are container images: deepinfer",
        ),
    ],
)
def test_wrong_use(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert message in capsys.readouterr().err


def test_usage_names_the_command_as_it_was_called(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.startswith("usage: b300-repro ")
    module = [sys.executable, "-m", "harness", "run", "--help"]
    done = subprocess.run(module, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: python -m harness run ")


@pytest.mark.parametrize("repeats", ["0", "-1", "x", "1001", "9" * 30])
def test_wrong_number_is_exit_2(repeats: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["plan", "--repeats", repeats])
    assert caught.value.code == 2
    assert "--repeats" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["smoke"], ["smoke", "--runtime", "docker"], ["deepseek-v41-flash-8xb300"]],
    ids=" ".join,
)
def test_a_dry_run_is_a_script_that_bash_can_read(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments, "--dry-run"]) == 0
    script = capsys.readouterr().out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    # Everything that a command needs was made before it.
    made = {part for line in script.splitlines() if line.startswith("mkdir")
            for part in line.split()[2:]}  # fmt: skip
    made |= {line.split()[2] for line in script.splitlines() if line.startswith("cat >")}
    made |= {line.split()[-1] for line in script.splitlines() if "tiny_llama" in line}
    for line in script.splitlines():
        if line.startswith("docker run"):
            sources = [part.partition("source=")[2].split(",")[0] for part in line.split()
                       if part.startswith("type=bind,source=")]  # fmt: skip
            assert all(
                any(folder.startswith(source) for folder in made) or "/models/" in source
                for source in sources
            ), line


def test_prompts_are_made_by_vllm_whatever_is_left_to_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    only = "deepinfer/1k-1k-c2048"
    assert main(["plan", "deepseek-v41-flash-8xb300", "--only", only, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (prompts,) = [line for line in lines if "harness.inside.prompts" in line]
    assert "vllm/vllm-openai@sha256:" in prompts
    assert any(line.startswith("docker pull vllm/vllm-openai@") for line in lines)


def test_dry_run_prints_every_command_and_makes_nothing(kit: Kit) -> None:
    done = call(kit, "run", "test", "--dry-run")
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    assert sum("vllm bench serve" in line for line in lines) == 2
    assert sum("vllm serve" in line for line in lines) == 1
    assert sum("harness.inside.launcher" in line for line in lines) == 1
    assert sum("pip install" in line for line in lines) == 2
    assert not kit.site.reports.exists()


def test_plan_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "smoke"]) == 0
    text = capsys.readouterr().out
    plan = planned("smoke")
    assert f"{len(plan.cells)} cells in {len(plan.sessions)} engine sessions" in text
    for cell in plan.cells:
        sizes = f"{cell.requests.input_len:,} -> {cell.requests.output_len:,} token"
        assert f"{cell.id}: {cell.requests.prompts} x {sizes}" in text


def test_report_is_derived_again_from_the_files(kit: Kit) -> None:
    report = Path(call(kit, "run", "test").stdout.splitlines()[1])
    before = report.read_text()
    report.unlink()
    assert main(["report", str(report.parent)]) == 0
    assert report.read_text() == before
