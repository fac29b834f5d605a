"""Certificates that the package itself does not make: an authority's, expired ones, openssl's of any kind."""

from __future__ import annotations

import datetime
import ipaddress
import pathlib
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "openssl"]


class Authority:
    """A certificate authority of a test. `pem` is its certificate."""

    def __init__(self, name: str) -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(self._name, self._name, self._key.public_key(), expired=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem: bytes = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, *names: str, expired: bool = False) -> tuple[bytes, bytes]:
        """A certificate for names and addresses, signed by this authority, and its key; both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = (
            _builder(subject, self._name, key.public_key(), expired=expired)
            .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM), private


def openssl(folder: pathlib.Path, *key: str) -> tuple[pathlib.Path, pathlib.Path]:
    """The certificate of `openssl req -x509`, which says that it is an authority, and its key, as files.

    Args:
        key: the arguments that say what kind of key to make, as `-newkey`, `ed25519`.
    """
    certificate, private = folder / "cert.pem", folder / "key.pem"
    request = ["openssl", "req", "-x509", *key, "-nodes", "-days", "7", "-subj", "/CN=localhost"]
    request += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    request += ["-keyout", str(private), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True, timeout=60)
    return certificate, private


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    begin, end = (-9, -2) if expired else (-1, 7)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=begin))
        .not_valid_after(now + datetime.timedelta(days=end))
    )


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
