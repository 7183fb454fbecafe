"""Data is never run: no pickle, no eval, no shell, no template made from data, no weights that hold code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "evenkeel"
MODULES = sorted(PACKAGE.rglob("*.py"))

MODULE_NAMES = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "imp",
    "code",
    "codeop",
}
"""Modules that turn data into objects or code."""
BUILT_IN = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
CALLS = {
    "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn",
    "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "pandas.read_pickle",
    "jinja2.Template", "string.Template", "ast.literal_eval", "tempfile.mktemp",
}  # fmt: skip
METHODS = {"from_string", "extractall", "unpack_archive", "read_pickle", "to_pickle", "load_module"}
UNSAFE = {
    "shell": {True}, "allow_pickle": {True}, "autoescape": {False}, "weights_only": {False},
    "trust_remote_code": {True}, "verify": {False}, "ssl": {False}, "check_hostname": {False},
}  # fmt: skip
"""Keywords by the values that no call may give them."""
REQUIRED = {
    "torch.load": "weights_only",
    "np.load": "allow_pickle",
    "numpy.load": "allow_pickle",
    "Environment": "autoescape",
}
"""Calls that are safe only with a keyword."""
EXCEPTIONS = {
    ("models/local/causal.py", "pickle"): "names the error that reading an old weights file ends in",
}


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def faults(source: str) -> Iterator[tuple[int, str]]:
    """The lines on which data could be run, and by what."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            for module in modules:
                if module.partition(".")[0] in MODULE_NAMES:
                    yield node.lineno, module
                yield from (
                    (node.lineno, f"{module}.{name}") for name in names if f"{module}.{name}" in CALLS
                )
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            if name in BUILT_IN or name in CALLS:
                yield node.lineno, name
            if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                yield node.lineno, node.func.attr
            if REQUIRED.get(name, "") not in {"", *keywords}:
                yield node.lineno, f"{name} without {REQUIRED[name]}"
            for keyword, value in keywords.items():
                if isinstance(value, ast.Constant) and value.value in UNSAFE.get(keyword or "", ()):
                    yield node.lineno, f"{keyword}={value.value!r}"


def test_nothing_runs_what_it_reads() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), what): line
        for path in MODULES
        for line, what in faults(path.read_text(encoding="utf-8"))
    }
    assert len(MODULES) > 200
    assert {name: line for name, line in found.items() if name not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) <= set(found)  # one that is needed no more goes


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from pickle import loads", "import torch; torch.load(path)", "eval(text)",
        "import yaml; yaml.load(text, yaml.Loader)", "from yaml import load; load(text)",
        "subprocess.run(line, shell=True)", "np.load(path)", "np.load(path, allow_pickle=True)",
        "torch.load(path, weights_only=False)", "environment.from_string(text)",
        "from jinja2 import Template",
        "Environment(loader=loader)", "model(path, trust_remote_code=True)", "archive.extractall(folder)",
        "os.system(text)", "session.get(url, ssl=False)",
    ],
)  # fmt: skip
def test_the_search_sees(source: str) -> None:
    assert list(faults(source))


def test_templates_are_files_of_the_package_and_escape_what_is_put_in() -> None:
    from jinja2 import PackageLoader

    from evenkeel.report import templates

    environment = templates._environment()
    assert isinstance(environment.loader, PackageLoader)
    assert environment.autoescape is True
