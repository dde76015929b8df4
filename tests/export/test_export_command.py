from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoint_makers import Make
from safetensors.torch import load_file, save_file
from stand_in_hub import COMMIT, StandInHub
from typer.testing import CliRunner, Result

from router.cli.main import app
from router.export import errors
from router.packs.store import read_pack


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))


def test_a_hub_id_becomes_a_pack_that_says_its_commit(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add("google/siglip-tiny", made("siglip"))
    result = run("packs", "export", "google/siglip-tiny", "--to", tmp_path / "pack")
    assert result.exit_code == 0, result.stderr
    assert "vision" in result.stdout
    assert "Wrote" in result.stdout
    assert "model.safetensors" in result.stderr
    manifest = read_pack(tmp_path / "pack").manifest
    assert manifest.source is not None
    assert (manifest.source.checkpoint, manifest.source.revision) == ("google/siglip-tiny", COMMIT)
    assert (manifest.name, manifest.licence) == ("siglip-tiny", "apache-2.0")
    assert manifest.space == f"siglip-tiny@{COMMIT[:12]}"


def test_a_folder_becomes_an_int8_pack(made: Make, tmp_path: Path) -> None:
    result = run("packs", "export", made("siglip"), "--to", tmp_path / "pack", "--precision", "int8")
    assert result.exit_code == 0, result.stderr
    manifest = read_pack(tmp_path / "pack").manifest
    assert manifest.vision is not None
    assert manifest.vision.precision == "int8"


def test_a_name_of_the_catalogue_says_what_it_stands_for(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add("google/siglip-base-patch16-224", made("siglip"))
    result = run("packs", "export", "siglip-base-224", "--to", tmp_path / "pack")
    assert result.exit_code == 0, result.stderr
    assert "siglip-base-224 is google/siglip-base-patch16-224; nobody has checked" in result.stderr


def test_a_name_that_is_nearly_right_is_guessed(tmp_path: Path) -> None:
    result = run("packs", "export", "siglip-base-225", "--to", tmp_path / "pack")
    assert result.exit_code == 2
    assert "did you mean" in result.stderr
    assert "siglip-base-224" in result.stderr


@pytest.mark.parametrize("verb", ["export", "pull"])
def test_a_name_like_no_other_leads_to_the_list(verb: str, tmp_path: Path) -> None:
    result = run("packs", verb, "xyzzy", "--to", tmp_path / "pack")
    assert result.exit_code == 2
    assert "`pointsman packs list --catalogue` shows its" in result.stderr
    assert len(result.stderr) < 250


def test_a_part_of_a_name_is_completed(tmp_path: Path) -> None:
    result = run("packs", "export", "naflex", "--to", tmp_path / "pack")
    assert "did you mean siglip2-base-naflex" in result.stderr


@pytest.mark.parametrize("verb", ["export", "pull"])
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("./nothing/here", "neither a folder here, nor a hub id"),
        ("/nowhere", "neither a folder here, nor a hub id"),
        ("../x", "neither a folder here, nor a hub id"),
        ("owner/na me", "neither a folder here, nor a hub id"),
        ("", "no folder here"),
    ],
)
def test_a_source_that_is_not_there_is_wrong_use(verb: str, source: str, message: str, tmp_path: Path) -> None:
    result = run("packs", verb, source, "--to", tmp_path / "pack")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("x")
    result = run("packs", "export", tmp_path / "model.safetensors", "--to", tmp_path / "pack")
    assert result.exit_code == 2
    assert "is a file; a checkpoint is the folder" in result.stderr


def test_a_path_that_is_not_text_is_named_before_a_library_fails_on_it(made: Make, tmp_path: Path) -> None:
    bad = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(made("classifier", "bert"), bad)
    for source, to in ((bad, tmp_path / "pack"), (made("classifier", "bert"), bad / "pack")):
        result = run("packs", "export", source, "--to", to)
        assert result.exit_code == 2
        assert "is not UTF-8" in result.stderr


def test_a_folder_is_not_pulled_but_exported(made: Make, tmp_path: Path) -> None:
    result = run("packs", "pull", made("siglip"), "--to", tmp_path / "pulled")
    assert result.exit_code == 2
    assert f"`pointsman packs export {made('siglip')} --to DIR`" in result.stderr
    assert not (tmp_path / "pulled").exists()


def test_a_target_that_is_taken_is_found_out_before_anything_is_fetched(hub: StandInHub, tmp_path: Path) -> None:
    for verb in ("export", "pull"):
        result = run("packs", verb, "google/siglip-tiny", "--to", tmp_path)
        assert result.exit_code == 2
        assert "exists already" in result.stderr
    assert hub.requests == []


@pytest.mark.parametrize("endpoint", ["junk", "ftp://hub", "https://", "http://host:99999", "http://[::1", "://"])
def test_an_endpoint_that_is_no_address_is_named(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    result = run("packs", "pull", "google/siglip-tiny", "--to", tmp_path / "checkpoint")
    assert result.exit_code == 2
    assert f"HF_ENDPOINT is {endpoint!r}, which is no address of a hub" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_never_become_a_pack(made: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(made("classifier", "bert"), broken)
    state = load_file(broken / "model.safetensors")
    state["classifier.bias"][0] = float("nan")
    save_file(state, broken / "model.safetensors", metadata={"format": "pt"})
    result = run("packs", "export", broken, "--to", tmp_path / "pack", "--allow-drift")
    assert result.exit_code == 1
    assert "not finite for golden input 0, so no pack was written, nor is it with --allow-drift" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]


def test_pull_lays_a_checkpoint_that_export_then_takes_without_the_hub(
    hub: StandInHub, made: Make, tmp_path: Path
) -> None:
    hub.add("someone/guard", made("classifier", "bert"))
    assert run("packs", "pull", "someone/guard", "--to", tmp_path / "guard").exit_code == 0
    hub.repos.clear()
    result = run("packs", "export", tmp_path / "guard", "--to", tmp_path / "pack")
    assert result.exit_code == 0, result.stderr
    assert read_pack(tmp_path / "pack").manifest.classifier is not None


@pytest.mark.parametrize("verb", ["export", "pull"])
def test_without_the_extra_the_command_that_installs_it_is_named(
    verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(errors, "NEEDED", (*errors.NEEDED, "pointsman_absent"))
    result = run("packs", verb, "google/siglip-tiny", "--to", tmp_path / "pack")
    assert result.exit_code == 1
    assert 'pip install "pointsman[export]"' in result.stderr


def test_an_existing_folder_is_named_and_kept(made: Make, tmp_path: Path) -> None:
    result = run("packs", "export", made("siglip"), "--to", tmp_path)
    assert result.exit_code == 2
    assert "exists already" in result.stderr


def test_the_command_itself_imports_neither_torch_nor_the_hubs_client() -> None:
    code = (
        "import sys, router.cli.main, router.cli.export, router.export.errors, router.export.kinds\n"
        "import router.export.images, router.export.golden\n"
        "sys.exit(' '.join({n.split('.')[0] for n in sys.modules}\n"
        "  & {'torch', 'transformers', 'onnx', 'huggingface_hub', 'sentencepiece', 'safetensors'}) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
