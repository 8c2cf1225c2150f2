"""From page to page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.tui import pages
from console.tui.screens.page import HELP, Page

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


def open_page(app: ConsoleApp, name: str) -> None:
    """One page in the place of another; the key of the one in front closes it.

    Help lies over the page it was asked on: what was looked for there and where stays. It goes when another is opened.
    """
    page: Page = getattr(pages, name)(app)
    front = app.screen
    if isinstance(front, Page) and front.page == page.page:
        front.action_close()
        return
    if isinstance(front, Page) and front.page == HELP and isinstance(below := app.screen_stack[-2], Page):
        app.pop_screen()
        if below.page == page.page:
            return
    if isinstance(app.screen, Page) and page.page != HELP:
        app.switch_screen(page)
    else:
        app.push_screen(page)
