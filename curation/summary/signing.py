"""Ed25519 signatures over a file, by a key in PEM; as `openssl pkeyutl -rawin` makes them."""

from __future__ import annotations

from typing import Any

from curation.errors import ConfigError, require


def sign(data: bytes, pem: bytes, name: str) -> bytes:
    """Return the signature of 64 bytes. Raises ConfigError, with the key's name."""
    return _key(pem, name, "private").sign(data)  # type: ignore[no-any-return]


def is_signed(data: bytes, signature: bytes, pem: bytes, name: str) -> bool:
    """Whether a signature is that of the public key. Raises ConfigError, with the key's name."""
    key = _key(pem, name, "public")
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _key(pem: bytes, name: str, kind: str) -> Any:
    require("cryptography", name)
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_pem_public_key,
    )

    try:
        key = load_pem_private_key(pem, None) if kind == "private" else load_pem_public_key(pem)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{name}: not a {kind} key in PEM without a password: {error}") from None
    wanted = ed25519.Ed25519PrivateKey if kind == "private" else ed25519.Ed25519PublicKey
    if not isinstance(key, wanted):
        raise ConfigError(f"{name}: not an Ed25519 key")
    return key
