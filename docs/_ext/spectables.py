"""Tables out of the specification's own objects: settings, policies, fields, units, errors, profiles."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs
import docstrings
import nodekit as kit
import ruledomain
import rulefacts
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from expertcache_spec import errors
from expertcache_spec.engines import PROFILES
from expertcache_spec.eviction import POLICIES, Parameter, card
from expertcache_spec.model import UNITS
from expertcache_spec.residency import SETTINGS, Settings

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

LABEL = re.compile(r"^([A-Z][A-Za-z ]+): (.*)$")


def labelled(docstring: str) -> dict[str, str]:
    """The `Label: text` entries of a policy module's docstring below its title, continuation lines joined."""
    found: dict[str, str] = {}
    label = ""
    for line in docstring.splitlines()[1:]:
        if match := LABEL.match(line):
            label, found[match[1]] = match[1], match[2]
        elif not line.strip():
            label = ""
        elif label:
            found[label] += f" {line.strip()}"
    return found


def meanings(cls: type) -> dict[str, str]:
    """Field to what the class docstring says about it."""
    found: dict[str, str] = {}
    for block in inspect.cleandoc(cls.__doc__ or "").split("\n\n"):
        for heads, said in docstrings.split_fields(cls, " ".join(block.split()))[1]:
            found |= dict.fromkeys(heads.split(", "), said)
    return found


class FieldsTable(SphinxDirective):
    """`fields-table MODULE:CLASS`: each field with its meaning and default; a field without a meaning warns."""

    required_arguments = 1

    def run(self) -> list[Node]:
        cls = rulefacts.load(self.arguments[0])
        said, rows = meanings(cls), list[tuple[str, ...]]()
        for field in attrs.fields(cls):
            if not field.init:
                continue
            if field.name not in said:
                ruledomain.warn("table", f"{cls.__name__} does not say what {field.name} is", self.get_location())
            rows.append((f"`{field.name}`", kit.sentence(said.get(field.name, "")), _default(field)))
        header: tuple[str, ...] = ("Field", "Meaning", "Default")
        if len({default for *_, default in rows}) == 1:
            header, rows = header[:2], [row[:2] for row in rows]
        return [kit.table(header, rows)]


def _default(field: Any) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return "empty" if field.default.factory in (dict, list, set) else "computed"
    return "empty" if field.default == () else f"`{field.default}`"


class SettingsTable(SphinxDirective):
    """`settings-table [NAME ...]`: the settings, their values (the first is the default) and meaning."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Node]:
        said = meanings(Settings)
        chosen = self.arguments[0].split() if self.arguments else SETTINGS
        rows = [(f"`{name}`", ", ".join(f"`{v}`" for v in SETTINGS[name]), kit.sentence(said[name])) for name in chosen]
        return [kit.table(("Setting", "Values, default first", "Meaning"), rows)]


class PolicyTable(SphinxDirective):
    """`policy-table`: every policy, linked to its page; one without a page warns."""

    def run(self) -> list[Node]:
        rows = []
        for name, found in POLICIES.items():
            link = kit.reference("std", "doc", f"/chapters/eviction/{name}", self.env.docname, name)
            rows.append((link, kit.sentence(found.summary), found.cost, "yes" if found.offline else "no"))
        return [kit.table(("Policy", "Victim", "Cost of a touch", "Needs the future"), rows)]


class PolicyCard(SphinxDirective):
    """`policy-card NAME`: what the card and the module of one policy say, in the order that every policy has."""

    required_arguments = 1

    def run(self) -> list[Node]:
        found = card(self.arguments[0])
        module = inspect.getmodule(found.indexed)
        said = labelled(inspect.getdoc(module) or "")
        pairs: list[tuple[str, kit.Content]] = [
            ("Victim", found.summary),
            ("Rule", kit.reference("rule", "id", found.rule, self.env.docname)),
            *said.items(),
            ("Indexed form", [kit.reference("py", "class", rulefacts.dotted(_path(found.indexed)), self.env.docname)]),
            ("Cost of a touch", found.cost),
            ("Needs the future", "yes" if found.offline else "no"),
            ("Can refuse a record", "yes" if found.can_refuse else "no"),
            ("Source", found.source),
        ]
        return [kit.facts(pairs)]


class ParameterTable(SphinxDirective):
    """`parameter-table NAME`: the parameters of one policy, with their values, defaults and meaning."""

    required_arguments = 1

    def run(self) -> list[Node]:
        rows = [
            (f"`{each.name}`", _values(each), f"`{each.default}`", kit.sentence(each.meaning))
            for each in card(self.arguments[0]).parameters
        ]
        return [kit.table(("Parameter", "Values", "Default", "Meaning"), rows)]


def _values(parameter: Parameter) -> str:
    if parameter.choices or isinstance(parameter.default, bool):
        return ", ".join(f"`{choice}`" for choice in parameter.choices or (True, False))
    ends = (("from", parameter.least), ("to", parameter.most))
    bounds = " ".join(f"{word} {end:g}" for word, end in ends if math.isfinite(end))
    return f"{'whole number' if isinstance(parameter.default, int) else 'number'} {bounds}".strip()


def _path(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


class ErrorTable(SphinxDirective):
    """`error-table`: the typed errors."""

    def run(self) -> list[Node]:
        return [kit.table(("Code", "Error", "Meaning"), self._rows(errors.ExpertCacheError))]

    def _rows(self, base: type[errors.ExpertCacheError]) -> Iterable[tuple[kit.Content, ...]]:
        for kind in base.__subclasses__():
            if kind.__module__ == errors.__name__:
                link = kit.reference("py", "exc", f"{kind.__module__}.{kind.__name__}", self.env.docname, kind.__name__)
                yield f"`{kind.code}`", link, (inspect.getdoc(kind) or "").split("\n\n")[0]
                yield from self._rows(kind)


class UnitTable(SphinxDirective):
    """`unit-table`: the units of a size."""

    def run(self) -> list[Node]:
        return [kit.table(("Unit", "Bytes"), [(f"`{unit}`", f"{size:,}") for unit, size in UNITS.items()])]


class ProfileList(SphinxDirective):
    """`profile-list`: each engine profile with its parameters and evidence."""

    def run(self) -> list[Node]:
        found: list[Node] = []
        for profile in PROFILES.values():
            settings = attrs.asdict(profile.settings).items()
            pairs: list[tuple[str, kit.Content]] = [
                ("Engine", profile.engine),
                ("Policy", f"`{profile.policy}`"),
                ("Settings", ", ".join(f"`{name}={value}`" for name, value in settings)),
                ("Reproduces", profile.reproduces),
                ("Evidence", profile.evidence),
                ("Only read from code", profile.read_only),
            ]
            section = nodes.section("", nodes.title(text=profile.name), ids=[f"profile-{profile.name}"])
            section += kit.facts(pairs)
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    for name, directive in (
        ("fields-table", FieldsTable), ("settings-table", SettingsTable), ("policy-table", PolicyTable),
        ("policy-card", PolicyCard), ("parameter-table", ParameterTable), ("error-table", ErrorTable),
        ("unit-table", UnitTable), ("profile-list", ProfileList),
    ):  # fmt: skip
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
