"""Rules over what is seen of server and cards → what, why, what to do: hysteresis, one event an episode."""

from console.notices.log_errors import errors_in
from console.notices.model import Look, Notice, Severity
from console.notices.rings import Rings
from console.notices.watcher import Watcher, once

__all__ = ["Look", "Notice", "Rings", "Severity", "Watcher", "errors_in", "once"]
