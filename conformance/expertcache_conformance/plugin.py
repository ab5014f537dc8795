"""The pytest plugin: options, outcomes, replay files and the report.

Loaded in every pytest run of the environment, so nothing but the standard library and pytest is imported until an
`--impl` option is given.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from expertcache_conformance.examination import Examination
    from expertcache_conformance.program import Program
    from expertcache_conformance.questions import Question
    from expertcache_conformance.report import Report

# Any, because the types may not be imported here.
IMPLEMENTATION: pytest.StashKey[Any] = pytest.StashKey()
REPORT: pytest.StashKey[Any] = pytest.StashKey()
EXPECTED: pytest.StashKey[dict[str, str]] = pytest.StashKey()
REPLAYED: pytest.StashKey[Any] = pytest.StashKey()
FACTS = "expertcache"
"""Attribute of a test report that carries what the suite found, as plain data."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the `--impl` options."""
    group = parser.getgroup("expertcache", "expert-cache conformance")
    group.addoption("--impl", metavar="NAME", help="what to examine: module, module:attribute, entry point, log:FILE")
    group.addoption("--policy", metavar="POLICY", help="a policy by itself, NAME or module:CARD, instead of --impl")
    group.addoption("--impl-report", metavar="FILE", help="write the findings as JSON, keyed by rule")
    group.addoption("--impl-expect", metavar="FILE", help="TOML list of rules expected to fail, strict both ways")
    group.addoption("--impl-replay", metavar="FILE", help="run one replay file instead of the suite")
    group.addoption("--impl-list", action="store_true", help="say what would run, and run nothing")
    group.addoption("--impl-failures", metavar="DIR", default=".expertcache-failures", help="where replay files go")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; with `--impl`, load the implementation and refuse to run without contracts."""
    config.addinivalue_line("markers", "rule(*ids): the rules of the specification that a test is about")
    if config.option.impl is not None and config.option.policy is not None:
        raise pytest.UsageError("--impl examines a cache, --policy a policy: give one of them")
    if config.option.impl is None and config.option.policy is None:
        for name in ("report", "expect", "replay", "list"):
            if getattr(config.option, f"impl_{name}"):
                raise pytest.UsageError(f"--impl-{name} needs --impl NAME or --policy NAME")
        return
    if not __debug__:
        raise pytest.UsageError("python -O removes the contracts that the verdicts rest on: run without it")
    if not _contracts():
        raise pytest.UsageError(
            f"EXPERTCACHE_CONTRACTS={os.environ['EXPERTCACHE_CONTRACTS']} removes the contracts that the verdicts rest "
            "on: run without it"
        )
    _read_options(config)


def _contracts() -> bool:
    from expertcache_spec.contracts import ENABLED

    return ENABLED


def _read_options(config: pytest.Config) -> None:
    """Load the implementation, read the files and look at the places to write to; raises `UsageError`."""
    from expertcache_conformance import adapters, files, report

    options, stash, here = config.option, config.stash, config.invocation_params.dir
    with _blaming("--policy" if options.impl is None else "--impl"):
        given, load = (options.policy, adapters.load_policy) if options.impl is None else (options.impl, adapters.load)
        stash[IMPLEMENTATION] = load(given, here)
    with _blaming("--impl-expect"):
        stash[EXPECTED] = files.read_expected(options.impl_expect)
    with _blaming("--impl-replay"):
        stash[REPLAYED] = files.read_replay(options.impl_replay)
        if options.impl_replay and options.impl and options.impl.startswith("log:"):
            raise files.CannotRead("a log cannot be asked; name an implementation")
    with _blaming("--impl-report"):
        if options.impl_report:
            files.check_file(Path(options.impl_report))
    with _blaming("--impl-failures"):
        if not options.impl_replay:  # which writes none
            files.check_folder(here / options.impl_failures)
    stash[REPORT] = report.Report(stash[IMPLEMENTATION], stash[REPLAYED] is not None)


@contextmanager
def _blaming(option: str) -> Generator[None]:
    from expertcache_conformance import adapters, files

    try:
        yield
    except (adapters.CannotLoad, files.CannotRead, files.CannotWrite) as error:
        raise pytest.UsageError(f"{option}: {error}") from error


def _ours(item: pytest.Item) -> bool:
    return getattr(getattr(item, "module", None), "__name__", "").partition(".")[0] == "expertcache_conformance" or (
        item.path.parent == Path(__file__).parent
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the suite's tests out of runs that they are not about; demand `--impl` where they are asked for."""
    ours = [item for item in items if _ours(item)]
    if not ours:
        return
    if IMPLEMENTATION not in config.stash:
        raise pytest.UsageError(
            "the conformance suite needs an implementation: pytest conformance --impl NAME, or a policy: --policy NAME"
        )
    replaying = config.stash[REPLAYED] is not None
    kept = [item for item in items if item not in ours or (item.name == "test_replay") == replaying]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture
def exam(request: pytest.FixtureRequest) -> Examination:
    """A fresh examination of the implementation."""
    from expertcache_conformance.examination import Examination

    stash = request.config.stash
    return Examination(stash[IMPLEMENTATION], dry=request.config.option.impl_list)


@pytest.fixture
def replayed(request: pytest.FixtureRequest) -> Program | Question | None:
    """The program or question of `--impl-replay`."""
    found: Program | Question | None = request.config.stash[REPLAYED]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn what a test raised into what it means for the implementation."""
    made = yield
    if call.when != "call" or IMPLEMENTATION not in item.config.stash or not _ours(item):
        return made
    from expertcache_conformance import report

    rules = [rule for marker in item.iter_markers("rule") for rule in marker.args]
    item.user_properties += [("rule", rule) for rule in rules]
    facts = report.judge_outcome(item, call, rules)
    setattr(made, FACTS, facts)
    made.outcome = facts.pop("pytest")
    if made.outcome == "skipped" and facts["outcome"] in ("not claimed", "not judged"):
        said = f"not claimed: {facts['text']}" if facts["outcome"] == "not claimed" else facts["text"]
        made.longrepr = (str(item.path), item.location[1] or 0, said)
    elif facts["outcome"] == "expected":
        made.wasxfail = facts["text"]
    elif facts["outcome"] != "passed":
        made.longrepr = facts["text"]
    return made


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Own words for outcomes that pytest has no word for."""
    outcome = getattr(report, FACTS, {}).get("outcome") if report.when == "call" else None
    return {
        "not claimed": ("not claimed", "-", "NOT CLAIMED"),
        "not judged": ("not judged", "u", "NOT JUDGED"),
        "error": ("error", "E", "ERROR"),
        "would run": ("would run", "?", "WOULD RUN"),
    }.get(outcome or "")


class Collector:
    """Gathers the facts of all reports on the side that prints: the controller under xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.unwritten = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the facts of a call, and failures outside of calls as errors."""
        facts = getattr(report, FACTS, None)
        if facts is not None:
            self.config.stash[REPORT].add(facts)
        elif report.failed:
            self.config.stash[REPORT].broken.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; an expected failure that did not happen fails the run."""
        found = self.config.stash[REPORT]
        if self.config.option.impl_list or hasattr(self.config, "workerinput") or not found.tests:
            return
        if self.config.option.impl_report:
            self._write(found, session)
        if found.unexpected_passes(self.config.stash[EXPECTED]) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _write(self, found: Report, session: pytest.Session) -> None:
        from expertcache_conformance.files import CannotWrite

        try:
            found.write(Path(self.config.option.impl_report), self.config.stash[EXPECTED])
        except CannotWrite as error:
            self.unwritten, session.exitstatus = f"--impl-report: {error}", pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the verdict."""
        found = self.config.stash[REPORT]
        for line in found.listing() if self.config.option.impl_list else found.summary(self.config.stash[EXPECTED]):
            terminalreporter.write_line(line)
        if self.unwritten:
            terminalreporter.write_line(self.unwritten)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the collector where there is something to collect."""
    if REPORT in session.config.stash:
        session.config.pluginmanager.register(Collector(session.config), "expertcache-collector")
