"""Thin sessions over ``python -m harness``; ``nox -l`` lists them.

nox itself returns only 0, 1 or 130; the harness has an exit code for each kind of failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests", "faults", "ranks"]
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = ((3, 11), (3, 12), (3, 13))

# nox ends its child half a second after Ctrl-C; engines need longer to stop in order.
PATIENCE = 90


PYTEST = ("pytest", "-n", "auto")
LINUX = ("--python-platform", "x86_64-unknown-linux-gnu", "--python-version", "3.12")
APART = ("--ignore=tests/faults", "--ignore=tests/ranks")
UNIT = "not (real or docker or contract or package)"


def harness(session: nox.Session, *arguments: str) -> None:
    """Run one verb of the harness, and give it time to clean up."""
    session.run(
        *("python", "-m", "harness", *arguments),
        interrupt_timeout=PATIENCE,
        terminate_timeout=PATIENCE,
    )


def install_tests(session: nox.Session) -> None:
    """Install the kit and what its tests need."""
    session.install("-e", ".", *nox.project.dependency_groups(PYPROJECT, "test"))


def check_python(session: nox.Session) -> None:
    """Refuse an unsupported Python before anything is installed."""
    if sys.version_info[:2] not in PYTHONS:
        session.error(
            f"Python {sys.version.split()[0]} does not fit, 3.11 to 3.13 do. "
            "Next: python3.12 -m pip install nox, then python3.12 -m nox -s reproduce"
        )


@nox.session
def reproduce(session: nox.Session) -> None:
    """Measure the suite made for this host and write its report; options go after --."""
    check_python(session)
    session.install("-e", ".")
    harness(session, "run", *session.posargs)


# The recipes of all suites; without --suite, the suite is this host's default.
RECIPES = sorted({path.stem for path in ROOT.glob("recipes/*/*.yaml")} - {"suite", "published"})


@nox.session(default=False)
@nox.parametrize("recipe", RECIPES)
def run(session: nox.Session, recipe: str) -> None:
    """Measure one recipe, for example: nox -s "run(recipe='vllm')"."""
    check_python(session)
    session.install("-e", ".")
    harness(session, "run", "--only", recipe, *session.posargs)


# The images of docker/images.lock.yaml that are not opt-in.
IMAGES = ("deepinfer", "vllm", "vllm-cpu")


@nox.session(default=False)
@nox.parametrize("image", IMAGES)
def build(session: nox.Session, image: str) -> None:
    """Pull or build images, run nothing; only one: nox -s "build(image='deepinfer')"."""
    check_python(session)
    session.install("-e", ".")
    harness(session, "build", image, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests: no engine, no Docker, under a minute."""
    install_tests(session)
    session.run(*PYTEST, "-m", UNIT, *APART, *session.posargs)


@nox.session
def faults(session: nox.Session) -> None:
    """Crashes at every write, full disks, kills and hangs, with a fake engine."""
    install_tests(session)
    session.run(*PYTEST, "tests/faults", *session.posargs)


@nox.session
def ranks(session: nox.Session) -> None:
    """The real launcher and ranks on a double of DeepInfer: numbers, kills and hangs."""
    install_tests(session)
    session.run(*PYTEST, "tests/ranks", *session.posargs)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """The tests of `tests`, `faults` and `ranks`, with a floor for branch coverage."""
    install_tests(session)
    session.run(*PYTEST, "-m", UNIT, "--cov", *session.posargs)


@nox.session(default=False)
def real_engine(session: nox.Session) -> None:
    """Tests against the real vLLM of the smoke suite, installed if it is missing."""
    check_python(session)
    install_tests(session)
    session.run(
        *("pytest", "-m", "real", *session.posargs),
        interrupt_timeout=PATIENCE,
        terminate_timeout=PATIENCE,
    )


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build the wheel, install it outside the clone, and use it there."""
    install_tests(session)
    session.install(*PYPROJECT["build-system"]["requires"])
    session.run("pytest", "tests/package", *session.posargs)


@nox.session(default=False)
def docker(session: nox.Session) -> None:
    """Tests that start their own Docker daemon; they need root, dockerd and busybox-static."""
    install_tests(session)
    session.run("pytest", "tests/docker", *session.posargs)


@nox.session(default=False)
def image_contract(session: nox.Session) -> None:
    """Rewrite docker/deepinfer/contract.json from a built image: the locked one, or one named."""
    session.install("-e", ".")
    session.run("python", "-m", "tests.tools.image_contract", *session.posargs)


@nox.session(default=False, python="3.12")
def contract(session: nox.Session) -> None:
    """Check the DeepInfer driver against the package's source: fetched by hash, never executed.

    Also resolves its image's lock again, to find hashes that are gone without building it.
    """
    install_tests(session)
    session.install("uv>=0.9")
    lock, resolved = ROOT / "docker" / "deepinfer" / "requirements.lock", session.create_tmp()
    again = str(Path(resolved) / "again.lock")
    resolve(session, lock, again, *LINUX, "--no-deps", "--only-binary", ":all:")
    session.run("python", "-m", "tests.contract.check_lock", str(lock), again)
    folder = Path(resolved).resolve() / "sources"
    session.run("python", "-m", "tests.contract.fetch", str(folder))
    session.run(
        *("pytest", "tests/contract", *session.posargs), env={"DEEPINFER_SOURCES": str(folder)}
    )


LINTERS = {
    "format": ("ruff", "format", "--check", "."),
    "check": ("ruff", "check", "."),
    "mypy": ("mypy",),
    "hadolint": ("hadolint", *(str(path) for path in sorted(ROOT.glob("docker/*/Dockerfile")))),
}


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, mypy --strict, hadolint; only one, as in a hook: nox -s lint -- mypy."""
    session.install("-e", ".", *nox.project.dependency_groups(PYPROJECT, "lint", "test"))
    for linter in session.posargs or LINTERS:
        session.run(*LINTERS[linter])


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Resolve the locks of docker/ again (uv resolves, pip installs)."""
    session.install("-e", ".", "uv>=0.9")
    cpu, deepinfer = ROOT / "docker" / "vllm-cpu", ROOT / "docker" / "deepinfer"
    whole = Path(session.create_tmp()) / "whole.lock"
    overrides = ("--overrides", str(cpu / "overrides.txt"))
    every = ("--universal", "--python-version", "3.11")
    resolve(session, cpu / "requirements.in", str(whole), *every, *overrides)
    session.run("python", "-m", "harness.runtime.locks", str(whole), str(cpu))
    overrides = ("--overrides", str(deepinfer / "overrides.txt"))
    wanted, output = deepinfer / "requirements.in", deepinfer / "requirements.lock"
    resolve(session, wanted, str(output), *LINUX, *overrides, "--only-binary", ":all:")


def resolve(session: nox.Session, wanted: Path, output: str, *options: str) -> None:
    """Resolve requirements into a lock with hashes."""
    session.run(
        *("uv", "pip", "compile", "--quiet", *options),
        *("--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"),
        *("--output-file", output, str(wanted)),
        silent=True,
    )
