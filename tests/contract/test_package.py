"""The package as installed: our module, its data, its command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import console
from console import paths

ROOT = Path(__file__).resolve().parents[2]
LOOK = "import console, console.paths as p; print(console.__file__); print(p.data('presets')); print(p.data('assets'))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout and installed into a folder of its own."""
    out, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return target


def run(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, "-P", *words], env=env, cwd=cwd, capture_output=True, text=True, check=True)


def test_in_a_checkout_the_data_lies_beside_the_package() -> None:
    assert Path(console.__file__) == ROOT / "console" / "__init__.py"
    assert paths.data("presets") == ROOT / "presets"
    assert paths.data("assets") == ROOT / "assets"


def test_in_a_wheel_the_data_lies_inside_the_package(installed: Path, tmp_path: Path) -> None:
    file, presets, assets = run(installed, "-c", LOOK, cwd=tmp_path).stdout.split()
    assert Path(file) == installed / "console" / "__init__.py"
    assert Path(presets) == installed / "console" / "_data" / "presets"
    assert (Path(presets) / "qwen3.8-27b-nvfp4-100k.yaml").is_file()
    assert any(Path(assets).iterdir())


def test_a_folder_called_console_does_not_win(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "console").mkdir()
    (tmp_path / "console" / "__init__.py").write_text("raise SystemExit('the wrong console')")
    listing = run(installed, "-m", "console", "presets", cwd=tmp_path).stdout
    assert "qwen3.8-27b-nvfp4-100k" in listing


@pytest.mark.parametrize(
    "module",
    ["console.cli.main", "console.server.life", "console.metrics.feed", "console.gpu.source", "console.lab.plan"],
)
def test_only_the_screens_import_textual(module: str) -> None:
    code = f"import sys, {module}; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_first_frame_waits_for_no_slow_import() -> None:
    slow = "{'numpy', 'httpx', 'console.sim', 'console.lab', 'pynvml'}"
    code = f"import sys, console.tui.app; print(sorted({slow} & set(sys.modules)))"
    assert printed(code).strip() == "[]"


def printed(code: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_http_comes_without_its_command_line_and_without_certificates_for_plain_http() -> None:
    code = (
        "import sys; from console.endpoint import Endpoint; client = Endpoint('http://127.0.0.1:9')._http(); "
        "print(sorted({'click', 'rich'} & set(sys.modules)), client._transport._pool._ssl_context.cert_store_stats())"
    )
    assert printed(code) == "[] {'x509': 0, 'crl': 0, 'x509_ca': 0}\n"


def test_https_is_verified() -> None:
    code = (
        "from console.endpoint import Endpoint; client = Endpoint('https://127.0.0.1:9')._http(); "
        "context = client._transport._pool._ssl_context; print(context.verify_mode.name, context.check_hostname)"
    )
    assert printed(code) == "CERT_REQUIRED True\n"
