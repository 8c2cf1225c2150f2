"""What one goes back to: the last preset that was ready and is not the one at hand."""

from __future__ import annotations

from console.paths import Paths
from console.presets import Preset
from console.server.worked import keep_worked, read_worked

A = Preset("a", "m", args={"max-num-seqs": 2})
B = Preset("b", "m")


def test_it_is_the_one_before_the_one_at_hand() -> None:
    paths = Paths.from_env()
    paths.make()
    assert read_worked(paths, None) is None
    keep_worked(paths, A)
    assert read_worked(paths, None) == A
    assert read_worked(paths, None, A) is None
    keep_worked(paths, B)
    for port in (8001, 8002):
        keep_worked(paths, B.with_port(port))
    assert read_worked(paths, None, A) == B.with_port(8002), "a start of A that failed: back to what was ready last"
    assert read_worked(paths, None, B) == A, "a crash of B, or a restart of it: back to what was ready before"
    changed = Preset("b", "m", args={"max-num-seqs": 4})
    assert read_worked(paths, None, changed) == B.with_port(8002)


def test_a_key_that_is_not_known_here_makes_no_other_preset() -> None:
    paths = Paths.from_env()
    paths.make()
    closed = Preset("c", "m", env={"VLLM_API_KEY": "sesame"}, secrets=frozenset({"VLLM_API_KEY"}))
    keep_worked(paths, closed)
    assert read_worked(paths, None, Preset("c", "m", secrets=frozenset({"VLLM_API_KEY"}))) is None


def test_a_file_that_cannot_be_used_is_no_way_back() -> None:
    paths = Paths.from_env()
    paths.make()
    for text in ('{"schema": 1, "preset": {"name": "a"}}', '{"schema": 1, "preset": 3, "before": []}', "{"):
        (paths.state / "worked.json").write_text(text)
        assert read_worked(paths, None) is None
    keep_worked(paths, A)
    assert read_worked(paths, None) == A
