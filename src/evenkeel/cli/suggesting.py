"""Groups and choices that say which name was probably meant."""

from __future__ import annotations

from typing import Any

import click

from evenkeel.messages import suggestion


class SuggestingGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchOption:
            raise
        except click.UsageError:
            known = self.list_commands(ctx)
            message = f"No such command '{args[0]}'.{suggestion(args[0], known)}"
            raise click.UsageError(f"{message} Available: {', '.join(known)}.", ctx) from None


class SuggestingChoice(click.Choice):  # type: ignore[type-arg, unused-ignore]
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = suggestion(str(value), map(str, self.choices))
            raise click.BadParameter(f"{error.message}{hint}", ctx, param) from None
