"""The `pointsman` command: its verbs and exit codes.

Exit codes: 0 fine, 1 the thing checked does not hold, 2 wrong use. Verbs import what they need when they run, so that
`--help` and `--version` answer at once.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # What a variable has may be what a request says.
    pretty_exceptions_show_locals=False,
    help="Routes LLM requests by evidence, beside Envoy.",
)
packs_app = typer.Typer(no_args_is_help=True, pretty_exceptions_show_locals=False, help="Model packs.")
app.add_typer(packs_app, name="packs")
rewards_app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_show_locals=False, help="Feedback for selections that learn."
)
app.add_typer(rewards_app, name="rewards")
records_app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_show_locals=False, help="Decision records that `serve` has kept."
)
app.add_typer(records_app, name="records")
import_app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_show_locals=False, help="Policies out of other routers' configurations."
)
app.add_typer(import_app, name="import")

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
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            envvar="POINTSMAN_LISTEN",
            metavar="HOST:PORT",
            help="Serve on TCP in place of unix sockets: the first worker's port, the others' follow.",
        ),
    ] = "",
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", envvar="POINTSMAN_TLS_CERT", help="Certificate for --listen, PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", envvar="POINTSMAN_TLS_KEY", help="Key of the certificate, PEM.")
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca",
            envvar="POINTSMAN_TLS_CLIENT_CA",
            help="Authorities; only clients with their word get in.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let --listen be reached from other machines without TLS.")
    ] = False,
    admin: Annotated[
        str,
        typer.Option(
            "--admin",
            envvar="POINTSMAN_ADMIN",
            metavar="HOST:PORT",
            help="Address of the page, of /explain, /policy and /metrics, and of feedback, as in 127.0.0.1:9902; one "
            "that is not loopback needs a token or client certificates; empty: none.",
        ),
    ] = "",
    probe: Annotated[
        str,
        typer.Option(
            "--probe",
            envvar="POINTSMAN_PROBE",
            metavar="HOST:PORT",
            help="Address of /livez, /readyz and /metrics alone, for kubelets and scrapers, as in 0.0.0.0:9903.",
        ),
    ] = "",
    admin_token_file: Annotated[
        Path | None,
        typer.Option(
            "--admin-token-file",
            envvar="POINTSMAN_ADMIN_TOKEN_FILE",
            metavar="FILE",
            help="File with the token that --admin asks for, 16 characters at least.",
        ),
    ] = None,
    admin_cert: Annotated[
        Path | None, typer.Option("--admin-cert", envvar="POINTSMAN_ADMIN_CERT", help="Certificate of --admin, PEM.")
    ] = None,
    admin_key: Annotated[
        Path | None, typer.Option("--admin-key", envvar="POINTSMAN_ADMIN_KEY", help="Key of that certificate, PEM.")
    ] = None,
    admin_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--admin-client-ca",
            envvar="POINTSMAN_ADMIN_CLIENT_CA",
            help="Authorities; only clients with their word get in at --admin.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            envvar="POINTSMAN_STATE",
            metavar="DIR",
            help="Folder that keeps what selections learn; default: --runtime-dir, which most systems empty.",
            show_default=False,
        ),
    ] = None,
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
    from router.telemetry.log import quieten_grpc

    quieten_grpc()

    from router.cli.administering import AdminFlags
    from router.cli.serve import run_serve

    flags = AdminFlags(admin, probe, admin_token_file, admin_cert, admin_key, admin_client_ca)
    tcp = (listen, tls_cert, tls_key, tls_client_ca, insecure)
    raise typer.Exit(run_serve(config, workers, runtime_dir, socket_mode, flags, state, log_format, log_level, *tcp))


@app.command()
def check(
    policy: PolicyArgument,
    as_json: JsonOption = False,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="SARIF 2.1.0, for code hosts and editors.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 for warnings and notes too.")] = False,
) -> None:
    """Check a policy: its schema, all it refers to, and what can be proven of its decisions. Exit 1 for errors."""
    from router.cli.check import run_check

    raise typer.Exit(run_check(policy, "sarif" if as_sarif else "json" if as_json else "text", strict))


@app.command()
def explain(
    policy: PolicyArgument,
    request: Annotated[
        Path, typer.Argument(metavar="REQUEST.json", help="A request body; - reads standard input.", show_default=False)
    ],
    path: Annotated[str, typer.Option("--path", help="HTTP path that the body was sent to.")] = "/v1/chat/completions",
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="A header of the request, as in 'x-team: blue'.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a request here and now, and show why, as a tree."""
    from router.cli.explain import run_explain

    raise typer.Exit(run_explain(policy, request, path, header or [], as_json))


@app.command("eval")
def evaluate(
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="A folder with policy.yaml and cases, or a policy.", show_default=False),
    ],
    cases: Annotated[
        Path | None,
        typer.Argument(metavar="CASES", help="Labelled requests, .jsonl or .yaml; default: the folder's."),
    ] = None,
    as_json: JsonOption = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with plots; it shows what failed cases say."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Write the figures as Markdown; names failed cases, no content."
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option("--min", metavar="SHARE", min=0, max=1, help="Share of cases that must pass; default: all."),
    ] = None,
    tune: Annotated[
        list[str] | None,
        typer.Option(
            "--tune",
            metavar="SIGNAL=GOAL",
            help="Propose a threshold: image/passport=fpr:0.01, recall:0.95 or precision:0.9. May be repeated.",
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write what --tune proposes into the policy.")] = False,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", min=1, max=256, help="Requests at once; default: one a core."),
    ] = None,
) -> None:
    """Run labelled requests through the real pipeline, and tell how often it is right. Exit 1 when too few pass."""
    from router.cli.evaluate import run_eval

    raise typer.Exit(
        run_eval(
            target,
            cases,
            as_json=as_json,
            html=html,
            markdown=markdown,
            least=least,
            tune=tune or (),
            write=write,
            concurrency=concurrency,
        )
    )


@app.command()
def envoy(
    policy: PolicyArgument,
    listen: Annotated[str, typer.Option("--listen", help="Address that Envoy listens on.")] = "127.0.0.1:10000",
    admin: Annotated[str, typer.Option("--admin", help="Address of Envoy's admin interface; empty: none.")] = "",
    workers: WorkersOption = "auto",
    runtime_dir: RuntimeDirOption = DEFAULT_RUNTIME_DIR,
    workers_at: Annotated[
        str,
        typer.Option("--workers-at", metavar="HOST:PORT", help="Where a `serve` with --listen is; empty: sockets."),
    ] = "",
    workers_ca: Annotated[
        Path | None, typer.Option("--workers-ca", help="Authorities of its certificate; makes Envoy speak TLS.")
    ] = None,
    workers_name: Annotated[
        str, typer.Option("--workers-name", help="Name in its certificate; default: the host of --workers-at.")
    ] = "",
    workers_cert: Annotated[
        Path | None, typer.Option("--workers-cert", help="Envoy's own certificate, for a `serve` that asks for it.")
    ] = None,
    workers_key: Annotated[Path | None, typer.Option("--workers-key", help="Key of Envoy's certificate.")] = None,
) -> None:
    """Print an Envoy bootstrap for the policy."""
    from router.cli.envoy import run_envoy

    tcp = (workers_at, workers_ca, workers_name, workers_cert, workers_key)
    raise typer.Exit(run_envoy(policy, listen, admin, workers, runtime_dir, *tcp))


@app.command()
def schema(
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="DIR",
            help="Write policy.schema.json and signals.md, the reference of signals, into a folder instead.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of policies, for editors."""
    from router.cli.schema import run_schema

    raise typer.Exit(run_schema(write))


@packs_app.command("list")
def packs_list(
    catalogue: Annotated[
        bool, typer.Option("--catalogue", help="List the checkpoints that `packs export` knows by name instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the packs that come with Pointsman."""
    from router.cli.packs import run_list

    raise typer.Exit(run_list(as_json, catalogue))


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


@rewards_app.command("add")
def rewards_add(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="The record's identifier.")],
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="The decision that it names.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model that answered.")],
    reward: Annotated[float, typer.Argument(metavar="REWARD", min=0, max=1, help="How good the answer was, in 0-1.")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="MODEL", help="A comparison with this one: 1 won, 0.5 drawn, 0 lost."),
    ] = None,
    admin: Annotated[
        str, typer.Option("--admin", envvar="POINTSMAN_ADMIN", metavar="HOST:PORT", help="The address of `serve`.")
    ] = "127.0.0.1:9902",
    admin_token_file: Annotated[
        Path | None,
        typer.Option(
            "--admin-token-file",
            envvar="POINTSMAN_ADMIN_TOKEN_FILE",
            metavar="FILE",
            help="File with the token, where that address asks for one.",
        ),
    ] = None,
) -> None:
    """Tell a running `serve` how good an answer was. Exit 1 when it was not taken."""
    from router.cli.rewards import run_add

    raise typer.Exit(run_add(admin, record, decision, model, reward, against, admin_token_file))


@rewards_app.command("show")
def rewards_show(
    state: Annotated[
        Path,
        typer.Option("--state", envvar="POINTSMAN_STATE", metavar="DIR", help="The folder that `serve` keeps it in."),
    ] = DEFAULT_RUNTIME_DIR,
    as_json: JsonOption = False,
) -> None:
    """Show what was learnt and measured."""
    from router.cli.rewards import run_show

    raise typer.Exit(run_show(state, as_json))


@rewards_app.command("estimate")
def rewards_estimate(
    policy: Annotated[Path, typer.Option("--policy", "-p", metavar="POLICY", help="The policy file.")],
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="Log of `serve` in JSON, a line an event.")],
    rewards: Annotated[
        Path,
        typer.Option("--rewards", metavar="FILE", help="Rewards in JSON, a line each, as POST /rewards takes them."),
    ],
    decision: Annotated[
        str | None, typer.Option("--decision", metavar="NAME", help="This one alone; default: all with several models.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate what a bandit would have earned, before it is switched on. Exit 1 when the log cannot tell."""
    from router.cli.rewards import run_estimate

    raise typer.Exit(run_estimate(policy, log, rewards, decision, as_json))


StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The store; default: where the policy keeps it.", show_default=False),
]
RecordsConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", envvar="POINTSMAN_CONFIG", help="The policy that `serve` runs with.", show_default=False
    ),
]
DsnEnvOption = Annotated[
    str | None,
    typer.Option("--dsn-env", metavar="NAME", help="Environment variable with the connection string of PostgreSQL."),
]
KeyEnvOption = Annotated[
    str | None,
    typer.Option("--key-env", metavar="NAME", help="Environment variable with the keys of captured content."),
]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="File with the keys of captured content.")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="SPAN|TIME", help="Since then, as in 90m, 12h, 7d or 2026-03-01T12:00:00Z."),
]


@records_app.command("list")
def records_list(
    store: StoreOption = None,
    config: RecordsConfigOption = None,
    decision: Annotated[str | None, typer.Option("--decision", metavar="NAME", help="This decision's alone.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Those that went to this model.")
    ] = None,
    since: SinceOption = None,
    differing: Annotated[
        bool, typer.Option("--differing", help="Those alone of which a shadow policy would do something else.")
    ] = False,
    unpassed: Annotated[
        bool, typer.Option("--unpassed", help="Those alone whose answer did not pass the checks of answers.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The newest N.")] = 50,
    dsn_env: DsnEnvOption = None,
    as_json: JsonOption = False,
) -> None:
    """List records, the newest first."""
    from router.cli.record_store import Where
    from router.cli.records import run_list

    where = Where(store, config, dsn_env)
    raise typer.Exit(run_list(where, decision, model, since, differing, unpassed, limit, as_json))


@records_app.command("show")
def records_show(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="Its identifier, or how that begins.")],
    store: StoreOption = None,
    config: RecordsConfigOption = None,
    content: Annotated[
        bool, typer.Option("--content", help="Show what was captured of the request as well; exit 1 where nothing was.")
    ] = False,
    dsn_env: DsnEnvOption = None,
    key_env: KeyEnvOption = None,
    key_file: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was decided and why, as a tree. Exit 1 when there is no such record."""
    from router.cli.record_store import Where
    from router.cli.records import run_show

    raise typer.Exit(run_show(Where(store, config, dsn_env, key_env, key_file), record, content, as_json))


@records_app.command("replay")
def records_replay(
    policy: Annotated[
        Path, typer.Option("--policy", "-p", metavar="POLICY", help="The policy to try.", show_default=False)
    ],
    store: StoreOption = None,
    config: RecordsConfigOption = None,
    since: SinceOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="The newest N; default: all.")
    ] = None,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page.")] = None,
    max_changed: Annotated[
        int | None, typer.Option("--max-changed", metavar="N", min=0, help="Exit 1 when more would change.")
    ] = None,
    dsn_env: DsnEnvOption = None,
    key_env: KeyEnvOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Decide recorded requests again under another policy, and tell what would change."""
    from router.cli.record_store import Where
    from router.cli.records import run_replay

    where = Where(store, config, dsn_env, key_env, key_file)
    raise typer.Exit(run_replay(where, policy, since, limit, as_json, html, max_changed))


@import_app.command("vsr")
def import_vsr(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A vLLM Semantic Router configuration, v0.3.", show_default=False)
    ],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="POLICY", help="Write the policy here; default: standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a policy that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Translate a configuration into a policy and list what was lost. Exit 1 when something was, 2 for no policy."""
    from router.cli.importing import run_import_vsr

    raise typer.Exit(run_import_vsr(config, to, force, as_json))


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
