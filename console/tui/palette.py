"""The palette: every command that makes sense now, found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.events import Key
from textual.message import Message
from textual.widgets import Input, OptionList

from console.tui.commands import COMMANDS, Command, shown_keys

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_CHOICES = (Input.Submitted, OptionList.OptionSelected, Key)
_LEFT_OUT = ("palette", "up", "down", "select")


class Palette(CommandPalette):
    """Textual's, mended: a key to a page of its list ended with an error while the list had no place on the screen
    yet, and a choice that came after it had been left took another screen away."""

    _left = False

    def dismiss(self, result: None = None) -> AwaitComplete:
        """The first way out counts."""
        self._left = True
        return super().dismiss(result)

    async def _dispatch_message(self, message: Message) -> None:
        # What still comes once it was left means nothing any more.
        if not (self._left and isinstance(message, _CHOICES)):
            await super()._dispatch_message(message)

    def _action_command_list(self, action: str) -> None:
        found = self.query_one(CommandList)
        if not found.scrollable_content_region:
            return
        if action == "select" and found.highlighted is not None:
            # At once, and not by a message that the next key could overtake.
            at = found.highlighted
            self._select_command(OptionList.OptionSelected(found, found.get_option_at_index(at), at))
        else:
            super()._action_command_list(action)


class ConsoleCommands(Provider):
    """The palette: the commands that make sense now."""

    def _offers(self) -> Iterator[tuple[Command, Callable[[], None]]]:
        app: ConsoleApp = self.app  # type: ignore[assignment]
        for command in COMMANDS:
            if command.shown and command.name not in _LEFT_OUT and not command.guard(app.situation):
                yield command, partial(app.carry_out, command)

    def _keys(self, command: Command) -> str:
        app: ConsoleApp = self.app  # type: ignore[assignment]
        return shown_keys(command, app.services.config.keys)

    async def discover(self) -> Hits:
        """Everything, before a letter is typed."""
        for command, run in self._offers():
            yield DiscoveryHit(f"{command.title}  ({self._keys(command)})", run, help=command.help)

    async def search(self, query: str) -> Hits:
        """What matches, in its title or its sentence."""
        matcher = self.matcher(query)
        for command, run in self._offers():
            text = f"{command.title}  ({self._keys(command)})"
            score = max(matcher.match(text), matcher.match(command.help) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(text), run, help=command.help)
