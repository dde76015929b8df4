"""What a policy may say of an encoder at a server, and what is told of what it may not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from router.cli.check import check
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.packs.store import shipped_folder

POLICY = """\
version: 1
upstreams: [{model: small, cluster: local}]
default_model: small
encoders:
  vision: {VISION}
"""


def loaded(vision: str) -> LoadedPolicy:
    return parse_policy(POLICY.replace("{VISION}", vision).encode(), Path("/base/policy.yaml"))


def test_a_pack_by_itself_is_run_here() -> None:
    for spelled in ("starter", "{pack: starter}"):
        encoders = loaded(spelled).encoders
        assert encoders.vision is not None
        assert encoders.vision.pack == "starter"
        assert encoders.vision.made(Path("/base"), 1) is None
        assert encoders.elsewhere == frozenset()


def test_a_pack_at_a_server_keeps_its_pack() -> None:
    given = """{pack: ./siglip, remote: "grpcs://[fd00::1]:8001", model: siglip, inputs: {pixel_values: INPUT__0},
      ca_file: ca.pem, cert_file: /etc/own.pem, key_file: key.pem, server_name: encoders, token_file: token,
      timeout_ms: 250, message_bytes: 1048576}"""
    encoders = loaded(given).encoders
    assert encoders.elsewhere == {"vision"}
    assert encoders.vision is not None
    assert encoders.vision.pack == "./siglip"
    server = encoders.vision.made(Path("/base"), 7)
    assert server is not None
    assert (server.target, server.secure, server.model, server.queue) == ("[fd00::1]:8001", True, "siglip", 7)
    assert server.inputs == (("pixel_values", "INPUT__0"),)
    assert (server.ca_file, server.cert_file) == (Path("/base/ca.pem"), Path("/etc/own.pem"))
    assert (server.timeout, server.message_bytes, server.server_name) == (0.25, 1 << 20, "encoders")


AT = 'pack: starter, remote: "grpc://encoders:8001", model: m'
BAD = [
    ("3", "5:11: encoders.vision: must be a pack's name or folder, or a mapping with `pack` and `remote`"),
    ('""', "5:11: encoders.vision: must not be empty"),
    ("{model: m}", 'encoders.vision.pack: needs the key "pack"'),
    ("{pack: starter, remoet: x}", '5:27: encoders.vision.remoet: unknown key "remoet"; did you mean "remote"?'),
    ('{pack: starter, remote: "http://a:1", model: m}', "must be grpc://host:port, or grpcs://host:port with TLS"),
    ('{pack: starter, remote: "a:1", model: m}', "must be grpc://host:port"),
    ('{pack: starter, remote: "grpc://a", model: m}', "there is no usual port"),
    ('{pack: starter, remote: "grpc://a:70000", model: m}', "port out of range 0-65535"),
    ('{pack: starter, remote: "grpc://me:pw@a:1", model: m}', "must not carry credentials"),
    ('{pack: starter, remote: "grpc://a:1/v2/models/m", model: m}', "the model's name is the key `model`"),
    ('{pack: starter, remote: "grpc://a:1"}', "with remote needs the key `model`"),
    ("{pack: starter, timeout_ms: 5}", "timeout_ms says how a server is asked, and there is no remote"),
    ("{" + AT + ", ca_file: x}", "ca_file belongs to TLS, and remote is grpc://; write grpcs://"),
    ("{" + AT + ", token_env: X}", "would send its token in the clear"),
    ("{" + AT.replace("grpc:", "grpcs:") + ", cert_file: x}", "needs cert_file and key_file together"),
    ("{" + AT.replace("grpc:", "grpcs:") + ", token_env: X, token_file: y}", "has token_env and token_file"),
    ("{" + AT + ", timeout_ms: 0}", "encoders.vision.timeout_ms: input should be greater than 0"),
    ("{" + AT + ", retries: many}", "encoders.vision.retries: must be a whole number"),
]


@pytest.mark.parametrize(("vision", "told"), BAD)
def test_what_cannot_be_is_told_with_its_place(vision: str, told: str) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(vision)
    [line] = caught.value.lines()
    assert told in line
    assert ":5:" in line


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_token_may_go_to_a_proxy_on_this_machine(host: str) -> None:
    vision = "{" + AT.replace("encoders:8001", f"{host}:8001") + ", token_env: X}"
    assert loaded(vision).encoders.elsewhere == {"vision"}


def test_check_asks_no_server_and_wants_no_weights(tmp_path: Path) -> None:
    pack = tmp_path / "mine"
    shutil.copytree(shipped_folder() / "starter-vision", pack)
    (pack / "vision.onnx").unlink()
    (pack / "vision.safetensors").unlink()
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("{VISION}", '{pack: ./mine, remote: "grpc://nobody.invalid:1", model: m}'))
    assert check(policy).problems == ()
    policy.write_text(POLICY.replace("{VISION}", "./mine"))
    [problem] = check(policy).problems
    assert "vision.onnx is missing" in problem.message


@pytest.mark.parametrize(
    ("more", "told"),
    [("ca_file: gone.pem", "gone.pem: No such file"), ("token_env: NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE has no token")],
)
def test_check_reads_certificates_and_tokens(tmp_path: Path, more: str, told: str) -> None:
    policy = tmp_path / "policy.yaml"
    vision = '{pack: starter, remote: "grpcs://encoders:8001", model: m, ' + more + "}"
    policy.write_text(POLICY.replace("{VISION}", vision))
    [problem] = check(policy).problems
    assert told in problem.message
    assert (problem.line, problem.location) == (4, ("encoders",))


def test_golden_vectors_are_wanted_of_a_pack_at_a_server_too(tmp_path: Path) -> None:
    pack = tmp_path / "mine"
    shutil.copytree(shipped_folder() / "starter-vision", pack)
    (pack / "golden" / "vision.npz").unlink()
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("{VISION}", '{pack: ./mine, remote: "grpc://nobody.invalid:1", model: m}'))
    [problem] = check(policy).problems
    assert "vision.npz is missing" in problem.message
