"""How the command line fails: one readable line on stderr and an exit code, never a traceback."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

import typer
from typer.core import TyperGroup

from expertcache_spec.errors import ExpertCacheError, InvalidPolicy, InvalidTrace
from expertcache_spec.eviction import Policy
from expertcache_spec.layout.files import WrongFile

BAD_TRACE = 1
"""Exit code of a bad trace or store, and of a mismatch with a recording."""
USAGE = 2
"""Exit code of everything that another command line would cure."""

OPTIONS = {"state the bytes of one record": "--record-bytes"}
"""How a cure of the specification begins, and the option that it is done with."""

_LONGEST = 2000


def printable(text: str) -> str:
    """The text in one line: what a terminal would act on is escaped, what is endless is cut."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_LONGEST])
    return shown + ("..." if len(text) > _LONGEST else "")


def complain(error: ExpertCacheError) -> int:
    """Print what, where and the cure on stderr; return the exit code that the error calls for."""
    text = str(error)
    for cure, option in OPTIONS.items():
        text = text.replace(f"Cure: {cure}", f"Cure: {cure} with {option}")
    typer.echo(f"expertcache: {printable(text)}", err=True)
    return BAD_TRACE if isinstance(error, InvalidTrace | WrongFile) else USAGE


def of_policy(error: Exception) -> InvalidPolicy | None:
    """What a hook of somebody's own policy raised, as an error that names policy and hook; None for all else."""
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        policy = frame.f_locals.get("self")
        kind, hook = type(policy), frame.f_code.co_name
        own = isinstance(policy, Policy) and not kind.__module__.startswith("expertcache_spec.")
        if own and hasattr(Policy, hook):
            return InvalidPolicy(
                f"{hook}() raised {type(error).__name__}: {error}",
                where=f"policy {kind.__module__}:{kind.__qualname__}, line {line}",
                cure="mend the policy; the suite under --policy has the traceback",
            )
    return None


class Commands(TyperGroup):
    """A group of commands that turns the specification's errors into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command line."""
        try:
            return super().invoke(ctx)
        except ExpertCacheError as error:
            raise typer.Exit(complain(error)) from None
        except Exception as error:
            found = of_policy(error)
            if found is None:
                raise
            raise typer.Exit(complain(found)) from None
