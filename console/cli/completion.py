"""`completion`: a script for bash, zsh or fish, made from the parser itself, so that it never lags behind."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping

from console.cli.house import House
from console.cli.voice import show
from console.errors import Exit
from console.lab.journal import run_names
from console.lab.plan import WORKLOADS

_PLAIN = re.compile(r"[\w.+@:-]+")
"""Names that a shell takes as they are: it expands what it is given to choose from, and would run what stands there."""
_OF_PRESETS = ("up", "show", "lint", "restart")
_AB = ("mtp", "chunk", "prefix", "graphs", "aa", "custom", "replay")
_AB_RUNS = ("list", "show", "compare", "resume", "stop", "adopt")
_OF_RUNS = ("show", "compare", "resume", "stop", "adopt", "recover")
_ASK = "qwen-console %s completion %s 2>/dev/null"
_VALUES = {"--workloads": WORKLOADS}
"""Options whose values are words that the parser does not list."""
Verbs = Mapping[str, argparse.ArgumentParser]


def completion(args: argparse.Namespace) -> int:
    """Print the script; `presets` and `runs` print what the scripts ask for."""
    if args.shell == "presets":
        show(name for name in House.of(args).catalog().presets if _PLAIN.fullmatch(name))
        return Exit.OK
    if args.shell == "runs":
        show(name for name in run_names(House.of(args).paths) if _PLAIN.fullmatch(name))
        return Exit.OK
    from console.cli.parser import build

    parser, verbs = build()
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]
    show(write(parser, verbs))
    return Exit.OK


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The long options that its help shows."""
    return [word for action in _shown(parser) for word in action.option_strings if word.startswith("--")]


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


def _words(name: str, verb: argparse.ArgumentParser) -> list[str]:
    """What may follow a verb beside files."""
    if name == "ab":
        return [*_AB, *_AB_RUNS, *_options(verb)]
    choices = [word for a in _shown(verb) if not a.option_strings and a.choices for word in a.choices]
    return [*choices, *_options(verb)]


def _valued(parser: argparse.ArgumentParser, verbs: Verbs) -> dict[str, tuple[str, ...]]:
    """Option that takes a value → the words that the value may be, none where any will do."""
    actions = [action for one in (parser, *verbs.values()) for action in _shown(one) if action.nargs != 0]
    found: dict[str, tuple[str, ...]] = {}
    for action in actions:
        for word in action.option_strings:
            if word.startswith("--"):
                found[word] = found.get(word) or _values(action, word)
    return found


def _values(action: argparse.Action, word: str) -> tuple[str, ...]:
    """What the value of an option may be, as far as that is words."""
    return tuple(map(str, action.choices or ())) or _VALUES.get(word, ())


def _shell(parser: argparse.ArgumentParser, verbs: Verbs, into: str) -> Iterator[str]:
    """What bash and zsh share: what was typed before, and into a variable the words that may follow."""
    valued = _valued(parser, verbs)
    given = '"${opts[@]}"'
    presets, runs = (f"$({_ASK % (given, what)})" for what in ("presets", "runs"))
    yield '    if [ -n "$skip" ]; then'
    yield '      if [ "$skip" = --presets ]; then opts+=(--presets "$word"); fi; skip=""; continue'
    yield "    fi"
    yield '    case "$word" in'
    yield f"      {'|'.join(valued)}) skip=$word ;;"
    yield "      --demo) opts+=(--demo) ;;"
    yield "      -*) ;;"
    yield '      *) if [ -z "$verb" ]; then verb=$word; elif [ -z "$what" ]; then what=$word; fi ;;'
    yield "    esac"
    yield "  done"
    yield '  case "$prev" in'
    yield f"    --preset) {into}={presets} ;;"
    for option, words in valued.items():
        if words:
            yield f"    {option}) {into}={shlex.quote(' '.join(words))} ;;"
    yield '    *) case "$verb $what" in'
    yield f"      ' ') {into}={shlex.quote(' '.join([*verbs, *_options(parser)]))} ;;"
    of_runs, options = "|".join(f"'ab {one}'" for one in _OF_RUNS), " ".join(_options(verbs["ab"]))
    yield f'      {of_runs}) {into}="{runs} {options}" ;;'
    for name, verb in verbs.items():
        fixed = shlex.quote(" ".join(_words(name, verb)))
        names = f'" {presets}"' if name in _OF_PRESETS else ""
        yield f"      '{name} '*) {into}={fixed}{names} ;;"
    yield "    esac ;;"
    yield "  esac"


def _bash(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "# qwen-console completion bash > ~/.local/share/bash-completion/completions/qwen-console"
    yield "_qwen_console() {"
    yield "  local word words='' verb='' what='' skip='' opts=()"
    yield "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
    yield '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield from _shell(parser, verbs, "words")
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield "complete -o default -F _qwen_console qwen-console"


def _zsh(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "#compdef qwen-console"
    yield "# qwen-console completion zsh > ~/.local/share/zsh-completions/_qwen-console"
    yield "# and in ~/.zshrc, before compinit: fpath=(~/.local/share/zsh-completions $fpath)"
    yield "_qwen_console() {"
    yield "  local word words_='' verb='' what='' skip='' prev=${words[CURRENT-1]}"
    yield "  local -a opts"
    yield '  for word in "${words[@]:1:$((CURRENT-2))}"; do'
    yield from _shell(parser, verbs, "words_")
    yield "  compadd -- ${=words_} || _files"
    yield "}"
    yield 'if [ "$funcstack[1]" = _qwen-console ]; then _qwen_console "$@"; else compdef _qwen_console qwen-console; fi'


def _fish(parser: argparse.ArgumentParser, verbs: Verbs) -> Iterator[str]:
    yield "# qwen-console completion fish > ~/.config/fish/completions/qwen-console.fish"
    told = {a.dest: a.help or "" for s in parser._subparsers._group_actions for a in s._choices_actions}  # type: ignore[union-attr]
    for name in verbs:
        about = shlex.quote(told.get(name, ""))
        yield f"complete -c qwen-console -n __fish_use_subcommand -a {name} -d {about}"
    yield from _fish_options("__fish_use_subcommand", parser)
    for name, verb in verbs.items():
        seen = f"'__fish_seen_subcommand_from {name}'"
        yield from _fish_options(seen, verb)
        words = [word for word in _words(name, verb) if not word.startswith("-")]
        if words:
            yield f"complete -c qwen-console -n {seen} -a {shlex.quote(' '.join(words))}"
        if name in _OF_PRESETS:
            yield f"complete -c qwen-console -n {seen} -f -a '({_ASK % ('', 'presets')})'"
    of_runs = f"'__fish_seen_subcommand_from ab; and __fish_seen_subcommand_from {' '.join(_OF_RUNS)}'"
    yield f"complete -c qwen-console -n {of_runs} -f -a '({_ASK % ('', 'runs')})'"


def _fish_options(when: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in _shown(parser):
        for word in action.option_strings:
            if word.startswith("--"):
                about = shlex.quote((action.help or "").replace("%%", "%"))
                values = " ".join(_values(action, word))
                wants = "" if action.nargs == 0 else f" -x -a {shlex.quote(values)}" if values else " -r"
                yield f"complete -c qwen-console -n {when} -l {word[2:]}{wants} -d {about}"
