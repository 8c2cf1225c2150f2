"""The long jobs of a console: one at a time, but for a stop, which may break off a start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.server.status import ServerStatus, State
from console.tui.messages import Ended
from console.tui.pollers import in_thread
from console.tui.screens.modal import Trouble
from console.tui.telling import LONG_S

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_AT_REST: Mapping[str, object] = MappingProxyType(
    {"acting": None, "draining": False, "probing": False, "raising": "", "coming": ""}
)
"""What is known of a job while there is none."""
Job = Callable[[], str | None]
"""Blocks until it is done; what there is to tell afterwards."""


class Jobs:
    """Runs jobs in workers; only the newest speaks for the console."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._newest = 0
        self._then: Callable[[], None] | None = None
        self._before = ServerStatus()
        """As the server was when the newest job began."""

    def begin(self, title: str, job: Job, then: Callable[[], None] | None = None, **what: object) -> None:
        """Do it from now on; its progress stands on the notice line, its error comes in a box.

        Args:
            title: what is being done, such as `stopping NAME`.
            job: what does it.
            then: what follows once it was done.
            what: more that is known while it lasts (`draining`, `probing`, `raising`, `coming`).
        """
        self._newest += 1
        self._then = then
        self._before = self._app.situation.status
        self._app.know(**{**_AT_REST, "acting": title, **what})
        self._app.run_worker(self._do(self._newest, title, job), name=title, group="action", exit_on_error=False)

    async def _do(self, number: int, title: str, job: Job) -> None:
        try:
            outcome = await in_thread(job)
        except ConsoleError as error:
            self._app.post_message(Ended(number, title, None, error))
        except Exception as error:  # noqa: BLE001 - the worker's edge: told to the user
            why = f"{type(error).__name__}: {error}"
            told = ConsoleError(f"{title} did not work", why, "`qwen-console status`")
            self._app.post_message(Ended(number, title, None, told))
        else:
            self._app.post_message(Ended(number, title, outcome))

    def ended(self, event: Ended) -> None:
        """One has ended; of one that was broken off nothing is told."""
        if event.job != self._newest:
            return
        self._rest(event.outcome or "")
        if event.error is None and self._then is not None:
            self._then()
            return
        # A start that found its port taken leaves a diagnosis, which stands in place of the figures.
        if event.error is not None and not hasattr(event.error, "diagnosis"):
            self._app.push_screen(Trouble(event.title, event.error))

    def see(self, status: ServerStatus) -> None:
        """A server that was to be brought up and is ready needs nobody's patience any more."""
        now, before = self._app.situation, self._before
        if now.raising != "server" or status.state is not State.READY or status.preset != now.coming:
            return
        if before.state is not State.READY or before.pid != status.pid:
            self._rest("")

    def _rest(self, outcome: str) -> None:
        """Nothing is being done; also takes back what was told of the job while it lasted."""
        self._app.know(**_AT_REST)
        self._app.dashboard.tell_note("action", "")
        self._app.tell(outcome, LONG_S)
