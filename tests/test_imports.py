"""Imports go one way: the kit's layers, checked on its syntax trees.

Every import counts: those inside functions, and those that only a type checker follows.
"""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the top down, a module or package of harness/ on each line. Each may import those below it;
# within a package, its modules may import each other, but never in a circle.
LAYERS = """\
__main__
cli
runner
report
results
engines
runtime
model
host
suite
settings
metrics
registry
validation
data
console
process
stamped_log
files
reading
yaml
clock
document
errors
__init__
inside
""".splitlines()

# What an engine's environment has besides Python itself: harness/inside runs there.
ENGINES = {"deep_ep", "deepinfer", "numpy", "torch", "vllm"}

Graph = Mapping[str, set[str]]
"""The imports of each module, by dotted names."""


def imports_of(source: str, modules: set[str]) -> Iterator[str]:
    """Yield the dotted names that a module imports; for the kit's own, the module's name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else str(node.module)


def read_graph(root: Path) -> Graph:
    """Return what every module of ``root``/harness imports."""
    files = {}
    for path in (root / "harness").rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: set(imports_of(path.read_text(), set(files))) for name, path in files.items()}


def layer(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def upward(graph: Graph) -> list[str]:
    """Return every import of a layer from above in the table."""
    place = {name: index for index, name in enumerate(LAYERS)}
    return [
        f"{module} imports {target}"
        for module, targets in graph.items()
        for target in sorted(targets & graph.keys())
        if place[layer(target)] < place[layer(module)]
    ]


def circle(graph: Graph) -> list[str]:
    """Return the modules of a circle, if there is one."""
    known = {module: targets & graph.keys() for module, targets in graph.items()}
    try:
        graphlib.TopologicalSorter(known).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def foreign_to_inside(graph: Graph) -> list[str]:
    """Return what harness/inside imports that is not in an engine's environment."""
    allowed = ENGINES | sys.stdlib_module_names
    return [
        f"{module} imports {target}"
        for module, targets in graph.items()
        if layer(module) == "inside"
        for target in sorted(targets)
        if not f"{target}.".startswith("harness.inside.") and target.split(".")[0] not in allowed
    ]


@pytest.fixture(scope="module")
def kit_imports() -> Graph:
    return read_graph(ROOT)


def test_the_table_lists_every_module_and_package_once(kit_imports: Graph) -> None:
    assert sorted(LAYERS) == sorted({layer(module) for module in kit_imports})


def test_no_import_goes_upward(kit_imports: Graph) -> None:
    assert upward(kit_imports) == []


def test_no_modules_import_each_other_in_a_circle(kit_imports: Graph) -> None:
    assert circle(kit_imports) == []


def test_inside_imports_only_what_engines_have(kit_imports: Graph) -> None:
    assert any(layer(module) == "inside" for module in kit_imports)
    assert foreign_to_inside(kit_imports) == []


@pytest.mark.parametrize(
    "line",
    [
        "import harness.report.tables",
        "from harness.report.tables import Table",
        "from harness.report import tables",
        "def later():\n    from harness.report import tables",
        "if TYPE_CHECKING:\n    from harness.report.tables import Table",
    ],
)
def test_every_way_to_import_counts(tmp_path: Path, line: str) -> None:
    for name, source in {"suite/plan": line, "report/tables": "import harness.suite.plan"}.items():
        path = tmp_path / "harness" / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(source)
    graph = read_graph(tmp_path)
    assert upward(graph) == ["harness.suite.plan imports harness.report.tables"]
    assert set(circle(graph)) == {"harness.suite.plan", "harness.report.tables"}


@pytest.mark.parametrize("name", ["harness.files", "harness", "psutil", "harness.insides"])
def test_what_engines_lack_is_foreign(name: str) -> None:
    graph = {"harness.inside.rank": {name, "harness.inside.jobs", "numpy", "os.path"}}
    assert foreign_to_inside(graph) == [f"harness.inside.rank imports {name}"]
