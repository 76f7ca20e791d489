"""`riskbayes completion`: the script that lets a shell complete commands, options and columns."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, add this line to ~/.bashrc: eval "$(riskbayes completion bash)". For zsh the same with zsh in
    ~/.zshrc; for fish: riskbayes completion fish > ~/.config/fish/completions/riskbayes.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "riskbayes", "_RISKBAYES_COMPLETE").source())
