"""What is installed: the package with its types and its licence, and nothing left behind in the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import List

import pytest

HERE = Path(__file__).resolve().parent.parent


def tree() -> List[str]:
    found = [os.path.join(at, name) for at, dirs, names in os.walk(HERE) for name in [*dirs, *names]]
    return sorted(name for name in found if "__pycache__" not in name and ".pytest_cache" not in name)


def test_wheel(tmp_path: Path) -> None:
    pytest.importorskip("flit_core", reason="no flit_core")
    before = tree()
    build = "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))"
    made = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=HERE, check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    assert tree() == before
    with zipfile.ZipFile(tmp_path / made) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    info = next(name for name in files if name.endswith("METADATA")).rsplit("/", 1)[0]
    assert files[f"{info}/licenses/LICENSE"] == (HERE.parent / "LICENSE").read_bytes()
    metadata = files[f"{info}/METADATA"].decode()
    for line in ("Name: tenure", "License-Expression: Apache-2.0", "License-File: LICENSE", "Author: The Tenure authors"):
        assert line in metadata.splitlines()
    want = {f"tenure/{path.name}" for path in (HERE / "tenure").iterdir() if path.suffix == ".py" or path.name == "py.typed"}
    assert {name for name in files if not name.startswith(info)} == want
