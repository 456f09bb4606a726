"""A wrong command line: one line that says what is wrong, what may be meant, and where the help is."""

from collections.abc import Iterator

import click

from audit.words.nearest import did_you_mean


class Named(click.Choice[str]):
    """One of a few names; what is none of them is answered with the nearest one as well."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        known = [str(choice) for choice in self.choices]
        return f"{value!r} is none of {', '.join(known)}{did_you_mean(str(value), known)}"


def usage_line(error: click.ClickException) -> str:
    """What is wrong and which help tells of it; the line is not yet free of line ends."""
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    if isinstance(error, click.NoSuchOption):
        owners = list(_owners(context.find_root(), error.option_name))
        if owners:
            more = " and others" if len(owners) > 3 else ""
            message = f"{error.message.removesuffix('.')}: it is of {', '.join(owners[:3])}{more}"
    return f"{message.removesuffix('.')} (help: {context.command_path} --help)"


def _owners(context: click.Context, option: str) -> Iterator[str]:
    """The commands that have the option."""
    group = context.command
    for name in group.list_commands(context) if isinstance(group, click.Group) else ():
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        if any(option in parameter.opts for parameter in command.params):
            yield f"`{context.command_path} {name}`".replace(context.find_root().command_path + " ", "")
        with click.Context(command, info_name=name, parent=context) as inner:
            yield from _owners(inner, option)
