"""What every test of the project shares: hypothesis that repeats itself, and searches that only run when asked for."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# A shell's background job ignores Ctrl-C and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One run is like another: what fails once fails again. `--nightly` looks further, with fresh examples.
settings.register_profile("daily", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=2000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="also run the long searches marked nightly")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: a long search, run only with --nightly")
    if not any(line.startswith("rule") for line in config.getini("markers")):
        config.addinivalue_line("markers", "rule(id, ...): the rules of the specification that a test is about")
    settings.load_profile("nightly" if config.getoption("nightly") else "daily")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("nightly"):
        return
    slow = [item for item in items if item.get_closest_marker("nightly")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cases the enumerations compared."""
    reports = terminalreporter.getreports("passed")
    told = [value for report in reports for name, value in report.user_properties if name == "enumerated"]
    if told:
        terminalreporter.section("enumerated")
        for line in told:
            terminalreporter.line(str(line))
