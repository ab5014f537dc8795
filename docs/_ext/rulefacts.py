"""What the book says about a rule, read from code and tests: no Sphinx here."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class Citation(NamedTuple):
    """One test that cites a rule: its file, relative to the project, and its name in pytest's spelling."""

    file: str
    name: str


class Contract(NamedTuple):
    """One checked condition that states a rule: its kind, the object that carries it, the condition's source."""

    kind: str
    holder: str
    source: str


def load(path: str) -> Any:
    """The object at `module:qualified.name`; raises `LookupError` when there is none."""
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in filter(None, names.split(".")):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"{path}: {error}") from error
    return found


def dotted(path: str) -> str:
    """The name under which the object at `module:qualified.name` is documented: where it was defined."""
    found = load(path)
    if inspect.isroutine(found) or inspect.isclass(found):
        return f"{found.__module__}.{found.__qualname__}"
    return path.replace(":", ".")


# ---------------------------------------------------------------------------------------------------- contracts


@cache
def contracts(package: str) -> Mapping[str, tuple[Contract, ...]]:
    """Rule id to the icontract conditions of the package whose description starts with it."""
    found: dict[str, dict[Contract, None]] = {}
    for module in _modules(package):
        for holder, value in _carriers(module):
            for kind, contract in _conditions(value):
                rule_id = (contract.description or "").partition(":")[0]
                entry = Contract(kind, holder, condition_source(contract.condition))
                found.setdefault(rule_id, {})[entry] = None
    return {rule_id: tuple(entries) for rule_id, entries in found.items()}


def _modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}."):
        yield importlib.import_module(info.name)


def _carriers(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Classes and functions defined in the module; a wrapped inherited method counts where it was written."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__ or not (inspect.isclass(value) or callable(value)):
            continue
        yield f"{module.__name__}.{getattr(value, '__qualname__', '')}", value
        for member in vars(value).values() if inspect.isclass(value) else ():
            if inspect.isfunction(member) and member.__module__ == module.__name__:
                yield f"{module.__name__}.{member.__qualname__}", member


def _conditions(value: Any) -> Iterator[tuple[str, Any]]:
    for group in getattr(value, "__preconditions__", ()):
        for contract in group:
            yield "before", contract
    for contract in getattr(value, "__postconditions__", ()):
        yield "after", contract
    for contract in getattr(value, "__invariants__", ()) if inspect.isclass(value) else ():
        yield "always", contract


def condition_source(condition: Any) -> str:
    """The text of a condition: a lambda's body, or a function whole."""
    lines, _ = inspect.findsource(condition)
    source, line = "".join(lines), condition.__code__.co_firstlineno
    names = condition.__code__.co_varnames[: condition.__code__.co_argcount]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == line and names == tuple(a.arg for a in node.args.args):
            return " ".join((ast.get_source_segment(source, node) or "").split())
    return inspect.getsource(condition)


# -------------------------------------------------------------------------------------------------------- tests


def cited(base: Path, roots: Iterable[str]) -> dict[str, tuple[Citation, ...]]:
    """Rule id to the tests under `roots` that carry `@pytest.mark.rule("<id>")`, found without importing them.

    A module's `pytestmark`, a class's decorators and decorators that the module has given a name count for every test
    that they mark.
    """
    found: dict[str, dict[Citation, None]] = {}
    for root in roots:
        for path in sorted((base / root).rglob("*.py")):
            name = path.relative_to(base).as_posix()
            for test, ids in _tests(ast.parse(path.read_text(encoding="utf-8"), str(path))):
                for rule_id in ids:
                    found.setdefault(rule_id, {})[Citation(name, test)] = None
    return {rule_id: tuple(tests) for rule_id, tests in sorted(found.items())}


def _tests(module: ast.Module) -> Iterator[tuple[str, set[str]]]:
    named: dict[str, set[str]] = {}
    for node in module.body:
        if isinstance(node, ast.Assign):
            ids = _marks([node.value], named)
            named |= {target.id: ids for target in node.targets if isinstance(target, ast.Name)}
    yield from _inside(module.body, "", named.get("pytestmark", set()), named)


def _inside(
    body: list[ast.stmt], prefix: str, shared: set[str], named: Mapping[str, set[str]]
) -> Iterator[tuple[str, set[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            ids = shared | _marks(node.decorator_list, named)
            yield from _inside(node.body, f"{prefix}{node.name}::", ids, named)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield prefix + node.name, shared | _marks(node.decorator_list, named)


def _marks(expressions: Iterable[ast.expr], named: Mapping[str, set[str]]) -> set[str]:
    """The ids of every `mark.rule(...)` call in the expressions, inside `parametrize` or behind a name as well."""
    found: set[str] = set()
    for node in (node for expression in expressions for node in ast.walk(expression)):
        if isinstance(node, ast.Name):
            found |= named.get(node.id, set())
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.rule"):
            constants = (argument.value for argument in node.args if isinstance(argument, ast.Constant))
            found.update(value for value in constants if isinstance(value, str))
    return found
