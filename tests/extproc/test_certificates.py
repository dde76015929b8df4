"""Files of certificates: read whole, checked, read again when they change, and never used when they do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from router.extproc.certificates import CertificateError, CertificateFiles, TlsFiles


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, ca: trustme.CA) -> TlsFiles:
    files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    put(files, ca.issue_cert("127.0.0.1"))
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    return files


def put(files: TlsFiles, leaf: trustme.LeafCert) -> None:
    put_cert(files, leaf)
    leaf.private_key_pem.write_to_path(files.key)


def put_cert(files: TlsFiles, leaf: trustme.LeafCert) -> None:
    files.cert.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))


def test_what_was_read_is_what_stands_there(files: TlsFiles) -> None:
    found = CertificateFiles(files).read()
    assert (found.cert, found.key) == (files.cert.read_bytes(), files.key.read_bytes())
    assert files.client_ca is not None
    assert found.client_ca == files.client_ca.read_bytes()


def test_the_key_is_in_no_repr(files: TlsFiles) -> None:
    assert "PRIVATE" not in repr(CertificateFiles(files).read())


def test_unchanged_files_are_no_change(files: TlsFiles) -> None:
    read = CertificateFiles(files)
    read.read()
    assert read.changed() is None


def test_a_new_pair_is_taken_once(files: TlsFiles, ca: trustme.CA) -> None:
    read = CertificateFiles(files)
    read.read()
    put(files, ca.issue_cert("127.0.0.1"))
    found = read.changed()
    assert found is not None
    assert found.cert == files.cert.read_bytes()
    assert read.changed() is None


def test_new_authorities_are_a_change(files: TlsFiles) -> None:
    read = CertificateFiles(files)
    before = read.read().client_ca
    assert files.client_ca is not None
    trustme.CA().cert_pem.write_to_path(files.client_ca)
    found = read.changed()
    assert found is not None
    assert found.client_ca != before


def test_a_pair_that_is_half_replaced_waits_for_its_other_half(
    files: TlsFiles, ca: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    read, leaf = CertificateFiles(files), ca.issue_cert("127.0.0.1")
    read.read()
    put_cert(files, leaf)
    assert read.changed() is None
    assert "certificates not taken over" in caplog.text
    leaf.private_key_pem.write_to_path(files.key)
    found = read.changed()
    assert found is not None
    assert found.key == leaf.private_key_pem.bytes()


def test_files_that_vanish_for_a_moment_change_nothing(files: TlsFiles, ca: trustme.CA) -> None:
    read = CertificateFiles(files)
    read.read()
    files.key.rename(files.key.with_suffix(".away"))
    assert read.changed() is None
    files.key.with_suffix(".away").rename(files.key)
    put(files, ca.issue_cert("127.0.0.1"))
    assert read.changed() is not None


def test_a_link_that_leads_elsewhere_is_a_change(files: TlsFiles, ca: trustme.CA, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        put(TlsFiles(folder / "tls.crt", folder / "tls.key"), ca.issue_cert("127.0.0.1"))
    data = tmp_path / "data"
    data.symlink_to(folders[0])
    read = CertificateFiles(TlsFiles(data / "tls.crt", data / "tls.key"))
    first = read.read()
    (tmp_path / "fresh").symlink_to(folders[1])
    (tmp_path / "fresh").replace(data)
    found = read.changed()
    assert found is not None
    assert found.cert != first.cert


@pytest.mark.parametrize("which", ["cert", "key", "client_ca"])
@pytest.mark.parametrize("what", ["missing", "empty", "other"])
def test_files_that_cannot_be_used_are_named_and_not_quoted(files: TlsFiles, which: str, what: str) -> None:
    file: Path = getattr(files, which)
    if what == "missing":
        file.unlink()
    else:
        file.write_text("" if what == "empty" else "my secret")
    with pytest.raises(CertificateError) as caught:
        CertificateFiles(files).read()
    assert str(file) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(files: TlsFiles, ca: trustme.CA) -> None:
    put_cert(files, ca.issue_cert("127.0.0.1"))
    with pytest.raises(CertificateError, match="key values mismatch"):
        CertificateFiles(files).read()


def test_a_key_with_a_password_is_refused_without_asking_for_it(files: TlsFiles) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    lock = serialization.BestAvailableEncryption(b"word")
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, lock)
    )
    with pytest.raises(CertificateError, match="the key has a password"):
        CertificateFiles(files).read()
