"""Ed25519 signatures of releases."""

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from taciturn._internal import strict_json
from taciturn._internal.files import check_absent, write_file
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter

PublicKey = str | Path | Ed25519PublicKey
"""Public key, or the PEM file that contains it."""

FORMAT = "taciturn-signature"
VERSION = 1

_CONTEXT = b"taciturn release 1\n"


def make_keys(path: str | Path) -> tuple[Path, Path]:
    """Write a new key pair: the private key to `path`, the public key to `path`.pub.

    Only the owner can read the private key. Neither file may exist.
    """
    private, public = Path(path).absolute(), Path(f"{Path(path).absolute()}.pub")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    shared = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for file in (private, public):
        check_absent(file)
    write_file(private, secret, is_private=True)
    try:
        write_file(public, shared)
    except BaseException:
        private.unlink()
        raise
    return private, public


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """Private key from a PEM file."""
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidDocument(f"{path} is not an unencrypted private key in PEM format") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidDocument(f"{path} is not an Ed25519 key; create one with taciturn keygen")
    return key


def read_public_key(path: str | Path) -> Ed25519PublicKey:
    """Public key from a PEM file."""
    try:
        key = serialization.load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidDocument(f"{path} is not a public key in PEM format") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidDocument(f"{path} is not an Ed25519 key; create one with taciturn keygen")
    return key


def as_public_key(key: PublicKey) -> Ed25519PublicKey:
    """The key, or the key in a PEM file."""
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, str | Path):
        return read_public_key(key)
    raise InvalidParameter("public_key must be an Ed25519 public key or the path of its file")


def signature(key: Ed25519PrivateKey, sums: bytes) -> str:
    """Contents of signature.json for a release whose checksums are `sums`."""
    return strict_json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "algorithm": "ed25519",
            "public_key": _raw(key.public_key()).hex(),
            "signature": key.sign(_CONTEXT + sums).hex(),
        }
    )


def check_signature(content: bytes, sums: bytes, expected: Ed25519PublicKey | None) -> str:
    """Public key that signed `sums`, in hexadecimal; raises if the signature is invalid.

    With `expected`, it must be that key. Without, the signature only shows that the holder of the
    key that it names signed these files.
    """
    try:
        document = strict_json.loads(content.decode("utf-8"), "the signature")
        public, signed = bytes.fromhex(document["public_key"]), bytes.fromhex(document["signature"])
        key = Ed25519PublicKey.from_public_bytes(public)
    except (InvalidDocument, KeyError, TypeError, ValueError):
        raise CheckFailed("the signature file is damaged") from None
    canonical = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": "ed25519",
        "public_key": public.hex(),
        "signature": signed.hex(),
    }
    if content != strict_json.dumps(canonical).encode():
        raise CheckFailed(
            "the signature file is damaged, or written by a newer version of Taciturn"
        )
    try:
        key.verify(signed, _CONTEXT + sums)
    except InvalidSignature:
        raise CheckFailed("the signature does not match the files") from None
    if expected is not None and _raw(expected) != public:
        raise CheckFailed("the release was signed with a different key")
    return public.hex()


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidDocument(f"cannot read {path}: {reason}") from None
