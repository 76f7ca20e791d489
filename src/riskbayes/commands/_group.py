"""The group of all commands: it imports them when they are asked for and turns errors into a sentence."""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import riskbayes.commands._completion  # noqa: F401 - registers its shell
import riskbayes.commands._signals as signals
from riskbayes.commands._errors import BadInput, as_sentence, interrupted
from riskbayes.markup import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ORDER = (
    *("demo", "compare", "fit", "predict", "explain", "export", "drift", "sample", "inspect", "findings"),
    *("explore", "reproduce", "bench"),
)
"""The order of the commands in `--help`; others follow."""

ELSEWHERE = {"reproduce": "riskbayes-paper", "bench": "riskbayes-paper"}
"""Commands that another package of this repository adds, which may not be installed."""

NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What newer releases of click raise to show the help of a command without arguments."""

DEBUG = "riskbayes.debug"
"""Where the flag `--debug` is kept in the context of a command."""


class LazyGroup(click.Group):
    """A group of the commands in `riskbayes.commands` and of those that installed packages add to it.

    An error is shown as its message, with the traceback only by `--debug`.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command; a character that standard output cannot encode becomes a question mark there."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        return super().main(*args, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of use."""
        rank = {name: place for place, name in enumerate(ORDER)}
        return sorted(
            {*own_commands(), *added_commands()}, key=lambda name: (rank.get(name, len(ORDER)), name)
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it; None if there is none. No package replaces one of ours."""
        if cmd_name in own_commands():
            command = getattr(import_module(f"riskbayes.commands.{cmd_name}"), cmd_name)
        elif cmd_name in (added := added_commands()):
            command = load_added(added[cmd_name])
        else:
            return None
        accept_debug(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the command; for a name without one say how to install it, or suggest the nearest."""
        name = args[0]
        known = own_commands() if name in own_commands() else self.list_commands(ctx)
        if name in known or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if name in ELSEWHERE:
            raise ImportError(
                f"riskbayes {name} is part of the package {ELSEWHERE[name]}, which is not installed. "
                "In a copy of the repository, run: pip install ./paper"
            )

        import difflib  # only after a mistake

        near = difflib.get_close_matches(name, known, 1)
        ctx.fail(f"No such command {name!r}.{f' Did you mean {near[0]!r}?' if near else ''}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 130 after Ctrl-C, 2 for a user's mistake, 1 for what should not be."""
        if ctx.params.get("debug"):
            ctx.meta[DEBUG] = True
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError) as error:
            if interrupted(error):
                ctx.exit(signals.status_after_interrupt)
            if isinstance(error, click.UsageError) and not isinstance(error, NO_ARGUMENTS):
                command = error.ctx.command_path if error.ctx is not None else "riskbayes"
                raise BadInput(f"{printable(error.format_message())} See: {command} --help") from error
            raise
        except (KeyboardInterrupt, Exception) as error:
            if interrupted(error):
                ctx.exit(signals.status_after_interrupt)
            if ctx.meta.get(DEBUG):
                raise
            raise as_sentence(error) from error


def own_commands() -> list[str]:
    """Return the names of the files of commands in this folder."""
    found = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return [name for name in found if not name.startswith("_")]


@cache
def added_commands() -> dict[str, EntryPoint]:
    """Return the entry points by which installed packages add commands, by the names of these."""
    from importlib.metadata import entry_points  # slow to import, and most commands are ours

    return {entry.name: entry for entry in entry_points(group="riskbayes.commands")}


def load_added(entry: EntryPoint) -> click.Command:
    """Import a command that a package adds; one that cannot be imported says so when it is run.

    So the help of all commands does not fail with it.
    """
    try:
        return entry.load()
    except Exception as error:
        why = f"The command {entry.name} of {entry.value.partition(':')[0]} cannot be imported: {error}"

        def fail(**_: Any) -> None:
            raise ImportError(why)

        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.Command(entry.name, settings, callback=fail, help="(cannot be imported)")


def accept_debug(command: click.Command) -> None:
    """Add the option `--debug` to a command, so that it may also stand at the end of the line."""
    if any(parameter.name == "debug" for parameter in command.params):
        return
    command.params.append(
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, callback=remember_debug, help="Show tracebacks."
        )
    )
    for name in getattr(command, "commands", {}):
        accept_debug(command.commands[name])  # type: ignore[attr-defined]


def remember_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Keep the flag for the group, which handles errors; contexts share `meta` with their parents."""
    if value:
        ctx.meta[DEBUG] = True
