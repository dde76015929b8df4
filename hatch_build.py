"""Compiles `proto/**/*.proto` into `router/proto/` whenever the project is built or installed.

The generated modules are not kept in git: they would go stale beside their sources.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OURS = re.compile(r"^(from|import) pointsman\b", re.MULTILINE)
"""How the modules import each other: by their place below `proto/`, which is not where they are imported from."""


def compile_protos(root: Path) -> None:
    """Write `*_pb2.py` and `*_pb2.pyi` for every source; raises RuntimeError when protoc refuses one."""
    from grpc_tools import protoc

    sources = sorted((root / "proto").rglob("*.proto"))
    out = root / "router" / "proto"
    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{root / 'proto'}", f"-I{well_known}", f"--python_out={out}", f"--pyi_out={out}"]
    status = protoc.main([*arguments, *(str(source) for source in sources)])
    if status != 0:
        raise RuntimeError(f"protoc failed with status {status} on {', '.join(s.name for s in sources)}")
    for source in sources:
        module = out / source.relative_to(root / "proto").with_suffix("")
        for made in (module.with_name(f"{module.name}_pb2{ending}") for ending in (".py", ".pyi")):
            made.write_text(OURS.sub(r"\1 router.proto.pointsman", made.read_text()))


class ProtoBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before a wheel, an editable install or an sdist is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree; hatch then picks the files up as artifacts."""
        compile_protos(Path(self.root))
