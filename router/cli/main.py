"""The `pointsman` command: its verbs and exit codes.

Exit codes: 0 fine, 1 the thing checked does not hold, 2 wrong use. Verbs import what they need when they run, so that
`--help` and `--version` answer at once.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Routes LLM requests by evidence, beside Envoy.")
packs_app = typer.Typer(no_args_is_help=True, help="Model packs.")
app.add_typer(packs_app, name="packs")

PolicyArgument = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
WorkersOption = Annotated[
    str,
    typer.Option("--workers", envvar="POINTSMAN_WORKERS", metavar="N|auto", help="Worker processes; auto: one a core."),
]
RuntimeDirOption = Annotated[
    Path,
    typer.Option("--runtime-dir", envvar="POINTSMAN_RUNTIME_DIR", help="Folder of the workers' unix sockets."),
]

DEFAULT_RUNTIME_DIR = Path("/run/pointsman")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pointsman {version('pointsman')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Routes LLM requests by evidence, beside Envoy."""


@app.command()
def serve(
    config: Annotated[Path, typer.Option("--config", "-c", envvar="POINTSMAN_CONFIG", help="The policy file.")],
    workers: WorkersOption = "auto",
    runtime_dir: RuntimeDirOption = DEFAULT_RUNTIME_DIR,
    socket_mode: Annotated[
        str,
        typer.Option(
            "--socket-mode", envvar="POINTSMAN_SOCKET_MODE", help="Permissions of the sockets; 660 lets a group in."
        ),
    ] = "600",
    admin: Annotated[
        str,
        typer.Option(
            "--admin",
            envvar="POINTSMAN_ADMIN",
            metavar="HOST:PORT",
            help="Loopback address that answers /livez and /readyz, as in 127.0.0.1:9902; empty: none.",
        ),
    ] = "",
    log_format: Annotated[
        Literal["json", "console"],
        typer.Option("--log-format", envvar="POINTSMAN_LOG_FORMAT", help="Form of log lines."),
    ] = "json",
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        typer.Option("--log-level", envvar="POINTSMAN_LOG_LEVEL", help="Least level that is logged."),
    ] = "INFO",
) -> None:
    """Serve ext_proc: start the workers and keep them running until SIGTERM or Ctrl-C."""
    from router.cli.serve import run_serve

    raise typer.Exit(run_serve(config, workers, runtime_dir, socket_mode, admin, log_format, log_level))


@app.command()
def check(policy: PolicyArgument, as_json: JsonOption = False) -> None:
    """Check a policy: its schema and everything it refers to. Exit 1 when something does not hold."""
    from router.cli.check import run_check

    raise typer.Exit(run_check(policy, as_json))


@app.command()
def explain(
    policy: PolicyArgument,
    request: Annotated[
        Path, typer.Argument(metavar="REQUEST.json", help="A request body; - reads standard input.", show_default=False)
    ],
    path: Annotated[str, typer.Option("--path", help="HTTP path that the body was sent to.")] = "/v1/chat/completions",
    as_json: JsonOption = False,
) -> None:
    """Decide a request here and now, and show why, as a tree."""
    from router.cli.explain import run_explain

    raise typer.Exit(run_explain(policy, request, path, as_json))


@app.command()
def envoy(
    policy: PolicyArgument,
    listen: Annotated[str, typer.Option("--listen", help="Address that Envoy listens on.")] = "127.0.0.1:10000",
    admin: Annotated[str, typer.Option("--admin", help="Address of Envoy's admin interface; empty: none.")] = "",
    workers: WorkersOption = "auto",
    runtime_dir: RuntimeDirOption = DEFAULT_RUNTIME_DIR,
) -> None:
    """Print an Envoy bootstrap for the policy."""
    from router.cli.envoy import run_envoy

    raise typer.Exit(run_envoy(policy, listen, admin, workers, runtime_dir))


@packs_app.command("list")
def packs_list(as_json: JsonOption = False) -> None:
    """List the packs that come with Pointsman."""
    from router.cli.packs import run_list

    raise typer.Exit(run_list(as_json))


RevisionOption = Annotated[
    str | None, typer.Option("--revision", help="Branch, tag or commit of the hub.", show_default=False)
]


@packs_app.command("export")
def packs_export(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A hub id, a checkpoint's folder, or a name of the catalogue.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The pack's folder.", show_default=False)],
    revision: RevisionOption = None,
    precision: Annotated[
        Literal["fp32", "int8", "bf16"],
        typer.Option("--precision", help="int8 is the fastest, bf16 needs OpenVINO and a processor that has it."),
    ] = "fp32",
    force: Annotated[bool, typer.Option("--force", help="Replace a pack that is there.")] = False,
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Write the pack even if it is too far from its reference.")
    ] = False,
) -> None:
    """Make a pack of a published checkpoint and hold it against PyTorch. Exit 1 when none was written."""
    from router.cli.export import run_export

    raise typer.Exit(run_export(source, to, revision, precision, force=force, allow_drift=allow_drift))


@packs_app.command("pull")
def packs_pull(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A hub id, or a name of the catalogue.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The checkpoint's folder.", show_default=False)],
    revision: RevisionOption = None,
) -> None:
    """Fetch a checkpoint into a folder, its digests checked. Exit 1 when that failed."""
    from router.cli.export import run_pull

    raise typer.Exit(run_pull(source, to, revision))


@packs_app.command("verify")
def packs_verify(
    pack: Annotated[str, typer.Argument(metavar="PACK", help="A pack's folder, or the name of a shipped one.")],
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="CHECKPOINT", help="A folder or a hub id; default: what the pack names."),
    ] = None,
    images: Annotated[
        Path | None, typer.Option("--images", metavar="DIR", help="Images to verify with, instead of the twenty here.")
    ] = None,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures.")] = None,
) -> None:
    """Hold a pack against PyTorch, stage by stage, and name what drifts. Exit 1 when something does."""
    from router.cli.verify import run_verify

    raise typer.Exit(run_verify(pack, reference, images, as_json, html))


@packs_app.command("probe")
def packs_probe(
    pack: Annotated[str, typer.Argument(metavar="PACK", help="A pack's folder, or the name of a shipped one.")],
    file: Annotated[
        Path | None, typer.Option("--file", metavar="PROBE.yaml", help="Fields, labels and images of your own.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="PACK", help="The pack with the text tower; default: this, or its kin."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rank labels of a few fields for images of them. Exit 1 when an image's top label is of another field."""
    from router.cli.verify import run_probe_verb

    raise typer.Exit(run_probe_verb(pack, file, text, as_json))


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
