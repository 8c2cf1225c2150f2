"""`probe prefix` and `probe layout`: the prefix cache of the running server, measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from console.cli.house import House
from console.cli.voice import say, show, show_json
from console.errors import ConsoleError, Exit, NothingError, UsageError
from console.server.run_lock import refuse_probe

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.lab.jobs import Message
    from console.lab.probes.prefix import PrefixTest

_BLOCKS = 3
_MOST_BLOCKS = 32


def probe(args: argparse.Namespace) -> int:
    """One of the two probes; 1 when what was to be shown does not hold."""
    house = House.of(args)
    return {"prefix": _prefix, "layout": _layout}[args.what](house, args)


def _endpoint(house: House) -> Endpoint:
    """The server to probe, where no A/B run would be spoilt by it."""
    refuse_probe(house.paths)
    endpoint = house.server.endpoint()
    if endpoint is None:
        raise NothingError("there is no server to probe", "none of this console runs", "`qwen-console up PRESET`")
    return endpoint


def _prefix(house: House, args: argparse.Namespace) -> int:
    if args.files:
        raise UsageError("`probe prefix` takes no files", "", "`qwen-console probe prefix --blocks 3`")
    blocks = _BLOCKS if args.blocks is None else args.blocks
    if not 1 <= blocks <= _MOST_BLOCKS:
        raise UsageError(f"--blocks {blocks}", f"from 1 to {_MOST_BLOCKS}", "three show enough")
    test = prefix_probe(house, say, blocks=blocks, block_tokens=args.block_tokens)
    if args.json:
        show_json(test.to_json())
    else:
        for i, cached in enumerate(test.cached, 1):
            show([f"sending {i}: {'n/a' if cached is None else cached} of {test.prompt_tokens} tokens from the cache"])
        show([test.sentence])
    return Exit.OK if test.ok else Exit.FAILED


def prefix_probe(
    house: House, tell: Callable[[str], None], *, blocks: int = _BLOCKS, block_tokens: int | None = None
) -> PrefixTest:
    """The prefix cache of the running server, tested with a prompt of whole blocks.

    Args:
        house: whose server.
        tell: hears what is sent.
        blocks: whole cache blocks of the prompt.
        block_tokens: the cache block, where the server does not tell it.

    Raises:
        BusyError: an A/B run goes on, or requests do.
        ConsoleError: there is no server, or it does not answer.
    """
    from console.lab.launch import refuse_if_busy
    from console.lab.probes.asking import Asker
    from console.lab.probes.prefix import prefix_test
    from console.lab.tokens import tokens_of

    endpoint = _endpoint(house)
    refuse_if_busy(house.server)
    model, preset = _model(house), house.server.preset()

    def count(messages: list[Message]) -> int:
        return len(tokens_of(endpoint, model, {"messages": messages}))

    block = _block(house, endpoint, block_tokens)
    speculates = preset is not None and preset.speculative is not None
    tell(f"a prompt of {blocks} blocks of {block} tokens and a tail, three times")
    return prefix_test(Asker(endpoint, model), count, block, blocks, speculates=speculates)


def _layout(house: House, args: argparse.Namespace) -> int:
    from console.lab.probes.layout import compare_layout, read_request
    from console.lab.tokens import tokens_of

    if args.blocks is not None:
        raise UsageError("`probe layout` takes no --blocks", "its two requests are as long as they are", "leave it out")
    if len(args.files) != 2:
        raise UsageError("`probe layout` takes two requests", "", "`qwen-console probe layout A.json B.json`")
    endpoint = _endpoint(house)
    first, second = (read_request(path) for path in args.files)
    model, block = _model(house), _block(house, endpoint, args.block_tokens)

    def tokenise(request: Any) -> list[int]:
        return tokens_of(endpoint, model, request)

    layout = compare_layout(first, second, block, tokenise)
    if args.json:
        show_json(layout.to_json())
    else:
        show(layout.sentences)
    return Exit.OK


def _model(house: House) -> str:
    preset = house.server.preset()
    if preset is None:
        raise ConsoleError("the server's preset is not known", "its record is lost", "`qwen-console restart`")
    return preset.served


def _block(house: House, endpoint: Endpoint, given: int | None) -> int:
    """The cache block: as given, as the log said, as `/metrics` says."""
    from console.metrics.feed import Feed

    block = given or house.server.facts().block_tokens
    block = block or Feed(endpoint).scrape().facts.block_tokens
    if block is None:
        raise ConsoleError("the server does not tell its cache block", "", "give it: --block-tokens N")
    return block
