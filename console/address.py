"""What can be the host of an address. Standard library only: the keeper imports this module."""

from __future__ import annotations

import re

_NAME = re.compile(r"[^\W_](?:[\w.-]{0,251}[^\W_])?\.?")


def is_host(word: str) -> bool:
    """Whether the word is the address of a machine, or can be its name."""
    if ":" in word:
        # Imported here: the keeper lives long and needs it hardly ever.
        import ipaddress

        try:
            ipaddress.IPv6Address(word)
        except ValueError:
            return False
        return "%" not in word or word.partition("%")[2].isalnum()
    return _NAME.fullmatch(word) is not None and all(0 < len(part) <= 63 for part in word.rstrip(".").split("."))
