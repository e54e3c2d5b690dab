#!/usr/bin/env python3
"""Open Countersign tokens with nothing but docs/token.md and the vectors.

The format is real only if somebody else can implement it. This is a second
implementation: it shares no code with the Go one, derives keys with HMAC from the
standard library, reads claims with a protobuf reader of its own, and takes
AES-256-GCM from the package `cryptography`.

It checks every vector, good ones and refused ones, prints how many, and exits with
status 1 when one disagrees.

    python3 verify.py [DIRECTORY OF VECTORS]
"""

import base64
import hashlib
import hmac
import json
import pathlib
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = 1
HMAC_SHA256, AES_256_GCM = 1, 2
# What a token is for. In the vectors, one that does not say is request state.
REQUEST_STATE_PURPOSE, CURSOR_PURPOSE = "requestState", "cursor"
MAC_LABELS = {
    REQUEST_STATE_PURPOSE: "countersign/v1/requeststate/mac",
    CURSOR_PURPOSE: "countersign/v1/cursor/mac",
}
KEY_ID, SALT, HEADER = slice(2, 10), slice(10, 42), slice(0, 42)
COMMITMENT, NONCE = slice(42, 74), slice(74, 86)
SHORTEST = {HMAC_SHA256: 42 + 32, AES_256_GCM: 86 + 16}
CLOCK_SKEW_MS = 60_000
ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class Refused(Exception):
    """A token that does not open; the message is the reason."""


# Derivation


def sha256_mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def expand(pseudorandom: bytes, information: bytes, size: int) -> bytes:
    """HKDF-Expand (RFC 5869) for at most one block."""
    return sha256_mac(pseudorandom, information + b"\x01")[:size]


class Key:
    """A root made ready for use."""

    def __init__(self, root: bytes):
        salt = hashlib.sha256(b"countersign/v1/extract").digest()
        self.pseudorandom = sha256_mac(salt, root)
        self.id = expand(self.pseudorandom, b"countersign/v1/key-id", 8)
        self.salt_key = expand(self.pseudorandom, b"countersign/v1/salt", 32)

    def derive(self, label: str, header: bytes) -> bytes:
        return expand(self.pseudorandom, label.encode() + b"\x00" + header, 32)

    def principal_tag(self, header: bytes, issuer: str, subject: str) -> bytes:
        key = self.derive("countersign/v1/tag/principal", header)
        return sha256_mac(key, prefixed(issuer.encode(), subject.encode()))

    def params_tag(self, header: bytes, digest: bytes) -> bytes:
        return sha256_mac(self.derive("countersign/v1/tag/params", header), digest)


def prefixed(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">H", len(part)) + part for part in parts)


def context_parts(context: dict) -> list:
    return [context[name].encode() for name in ("audience", "tenant", "environment")]


# Protobuf


class Unreadable(Exception):
    """Bytes that are not claims."""


def read_varint(content: bytes, at: int) -> tuple:
    value = 0
    for position in range(10):
        if at >= len(content):
            raise Unreadable("a varint is cut short")
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise Unreadable("a varint is too long")


def read_message(content: bytes, fields: dict) -> dict:
    """Read a message whose fields are number -> (name, kind, repeated)."""
    message = {
        name: [] if repeated else default(kind) for name, kind, repeated in fields.values()
    }
    at = 0
    while at < len(content):
        tag, at = read_varint(content, at)
        number, wire = tag >> 3, tag & 7
        if number not in fields:
            raise Unreadable(f"field {number} is unknown")
        name, kind, repeated = fields[number]
        if kind in ("int64", "uint32"):
            if wire != 0:
                raise Unreadable(f"field {number} has wire type {wire}")
            value, at = read_varint(content, at)
            if kind == "uint32":
                value &= (1 << 32) - 1
            elif value >= 1 << 63:
                value -= 1 << 64
        else:
            if wire != 2:
                raise Unreadable(f"field {number} has wire type {wire}")
            length, at = read_varint(content, at)
            if length > len(content) - at:
                raise Unreadable(f"field {number} is cut short")
            value, at = content[at : at + length], at + length
            if kind == "string":
                try:
                    value = value.decode("utf-8")
                except UnicodeDecodeError:
                    raise Unreadable(f"field {number} is not UTF-8") from None
            elif isinstance(kind, dict):
                parsed = read_message(value, kind)
                # A message that comes again is merged into the first; here it is
                # enough to know that it can be read.
                value = parsed if repeated or message[name] is None else message[name]
        if repeated:
            message[name].append(value)
        else:
            message[name] = value
    return message


def default(kind):
    if isinstance(kind, dict):
        return None
    return {"int64": 0, "uint32": 0, "string": "", "bytes": b""}[kind]


QUESTION = {1: ("key", "string", False), 2: ("digest", "bytes", False)}
ANSWER = {1: ("key", "string", False), 2: ("response", "bytes", False)}
ENTRY = {1: ("key", "string", False), 2: ("value", "string", False)}
REQUEST_STATE = {
    1: ("chainId", "string", False),
    2: ("chainStartedMs", "int64", False),
    3: ("chainExpiresMs", "int64", False),
    4: ("round", "uint32", False),
    5: ("attempts", "uint32", False),
    6: ("questions", QUESTION, True),
    7: ("answers", ANSWER, True),
    8: ("handlerState", ENTRY, True),
    9: ("handler", "string", False),
    10: ("catalogRevision", "string", False),
}
REQUEST_STATE_CLAIMS = {
    1: ("issuedAtMs", "int64", False),
    2: ("expiresAtMs", "int64", False),
    3: ("method", "string", False),
    4: ("target", "string", False),
    5: ("principalTag", "bytes", False),
    6: ("paramsTag", "bytes", False),
    7: ("requestState", REQUEST_STATE, False),
}
CURSOR_CLAIMS = {
    1: ("issuedAtMs", "int64", False),
    2: ("expiresAtMs", "int64", False),
    3: ("method", "string", False),
    4: ("principalTag", "bytes", False),
    5: ("cursor", {1: ("after", "string", False)}, False),
}


# Opening


def purpose_of(vector: dict) -> str:
    return vector.get("purpose", REQUEST_STATE_PURPOSE)


def decode(text: str, suite: int) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    if not ALPHABET.issuperset(raw) or len(raw) % 4 == 1:
        raise Refused("MALFORMED")
    framed = base64.urlsafe_b64decode(raw + b"=" * (-len(raw) % 4))
    if base64.urlsafe_b64encode(framed).rstrip(b"=") != raw:
        raise Refused("MALFORMED")
    if len(framed) < SHORTEST[suite]:
        raise Refused("MALFORMED")
    return framed


def authenticate(key: Key, framed: bytes, suite: int, purpose: str, context: dict) -> bytes:
    """Return the claims of a token that the key made in this context for this purpose."""
    header = framed[HEADER]
    if suite == HMAC_SHA256:
        claims, tag = framed[42:-32], framed[-32:]
        message = prefixed(header, *context_parts(context)) + struct.pack(">I", len(claims)) + claims
        mac = sha256_mac(key.derive(MAC_LABELS[purpose], header), message)
        if not hmac.compare_digest(mac, tag):
            raise Refused("NOT_AUTHENTIC")
        return claims
    commitment = key.derive("countersign/v1/requeststate/commit", header)
    if not hmac.compare_digest(commitment, framed[COMMITMENT]):
        raise Refused("WRONG_COMMITMENT")
    associated = prefixed(framed[:74], *context_parts(context))
    cipher = AESGCM(key.derive("countersign/v1/requeststate/enc", header))
    try:
        return cipher.decrypt(framed[NONCE], framed[86:], associated)
    except InvalidTag:
        raise Refused("NOT_AUTHENTIC") from None


def open_token(text: str, opening: dict) -> dict:
    """Return the claims, or raise Refused with the first reason that applies."""
    suite, purpose = opening["suite"], purpose_of(opening)
    if len(text.encode("utf-8", "surrogatepass")) > opening["maxLength"]:
        raise Refused("TOO_LARGE")
    framed = decode(text, suite)
    if framed[0] != VERSION:
        raise Refused("UNKNOWN_VERSION")
    if framed[1] != suite:
        raise Refused("WRONG_SUITE")

    keys = [Key(bytes.fromhex(root)) for root in opening["roots"]]
    retired = [Key(bytes.fromhex(root)) for root in opening.get("retiredRoots", [])]
    key = next((key for key in keys if key.id == framed[KEY_ID]), None)
    if key is None:
        known = any(key.id == framed[KEY_ID] for key in retired)
        raise Refused("RETIRED_KEY" if known else "UNKNOWN_KEY")

    encoded = authenticate(key, framed, suite, purpose, opening["context"])
    is_cursor = purpose == CURSOR_PURPOSE
    try:
        claims = read_message(encoded, CURSOR_CLAIMS if is_cursor else REQUEST_STATE_CLAIMS)
    except Unreadable:
        raise Refused("UNREADABLE_CLAIMS") from None
    tags, content = (("principalTag",), "cursor") if is_cursor else (("principalTag", "paramsTag"), "requestState")
    if claims[content] is None or any(len(claims[tag]) != 32 for tag in tags):
        raise Refused("UNREADABLE_CLAIMS")
    judge(key, framed[HEADER], claims, opening)
    return claims


def judge(key: Key, header: bytes, claims: dict, opening: dict):
    """Raise Refused with the first reason that applies to authentic claims."""
    principal, now = opening["principal"], opening["nowMs"]
    # All tags are compared before any decides. A cursor has no more than that of the
    # principal, and no chain, target or round.
    same_principal = hmac.compare_digest(
        key.principal_tag(header, principal["issuer"], principal["subject"]), claims["principalTag"]
    )
    chain_over = other_target = other_params = late = False
    if purpose_of(opening) == REQUEST_STATE_PURPOSE:
        digest, state = bytes.fromhex(opening["paramsDigest"]), claims["requestState"]
        other_params = not hmac.compare_digest(key.params_tag(header, digest), claims["paramsTag"])
        chain_over = now >= state["chainExpiresMs"]
        other_target = claims["target"] != opening["target"]
        late = state["round"] > opening["maxRound"]
    for failed, reason in (
        (claims["issuedAtMs"] > now + CLOCK_SKEW_MS, "NOT_YET_VALID"),
        (now >= claims["expiresAtMs"], "EXPIRED"),
        (chain_over, "CHAIN_EXPIRED"),
        (claims["method"] != opening["method"], "OTHER_METHOD"),
        (other_target, "OTHER_TARGET"),
        (not same_principal, "OTHER_PRINCIPAL"),
        (other_params, "OTHER_PARAMS"),
        (late, "TOO_MANY_ROUNDS"),
    ):
        if failed:
            raise Refused(reason)


# Checking


class Checks:
    """Counts what was checked and what disagreed."""

    def __init__(self):
        self.count, self.failures = 0, 0

    def equal(self, name: str, got, want):
        self.count += 1
        if got != want:
            self.failures += 1
            print(f"{name}: got {got!r}, want {want!r}", file=sys.stderr)

    def refused(self, name: str, text: str, opening: dict, reason: str):
        try:
            open_token(text, opening)
            got = "it opened"
        except Refused as refusal:
            got = str(refusal)
        self.equal(name, got, reason)


def check_keys(checks: Checks, vectors: list):
    for vector in vectors:
        key = Key(bytes.fromhex(vector["root"]))
        checks.equal(vector["name"], key.pseudorandom.hex(), vector["pseudorandomKey"])
        checks.equal(vector["name"], key.id.hex(), vector["keyId"])
        checks.equal(vector["name"], key.salt_key.hex(), vector["saltKey"])


def check_labels(checks: Checks, vectors: list):
    for vector in vectors:
        information = vector["label"].encode() + b"\x00" + bytes.fromhex(vector["header"])
        derived = expand(bytes.fromhex(vector["pseudorandomKey"]), information, 32)
        checks.equal(vector["label"], derived.hex(), vector["derived"])


def check_tokens(checks: Checks, vectors: list):
    for vector in vectors:
        name, suite = vector["name"], vector["suite"]
        key = Key(bytes.fromhex(vector["root"]))
        salt_input = (
            bytes([suite])
            + bytes.fromhex(vector["random"])
            + prefixed(*context_parts(vector["context"]))
            + bytes.fromhex(vector["claimsBeforeTags"])
        )
        salt = sha256_mac(key.salt_key, salt_input)
        header = bytes([VERSION, suite]) + key.id + salt
        checks.equal(name, salt_input.hex(), vector["saltInput"])
        checks.equal(name, salt.hex(), vector["salt"])
        checks.equal(name, salt[:16].hex(), vector["tokenId"])
        checks.equal(name, header.hex(), vector["header"])
        principal = vector["principal"]
        tag = key.principal_tag(header, principal["issuer"], principal["subject"])
        checks.equal(name, tag.hex(), vector["principalTag"])
        if "paramsTag" in vector:
            tag = key.params_tag(header, bytes.fromhex(vector["paramsDigest"]))
            checks.equal(name, tag.hex(), vector["paramsTag"])
        checks.equal(name, seal(key, header, vector), vector["token"])

        is_cursor = purpose_of(vector) == CURSOR_PURPOSE
        decoded = vector["decodedCursor" if is_cursor else "decoded"]
        opening = {
            "purpose": purpose_of(vector), "suite": suite, "roots": [vector["root"]], "context": vector["context"],
            "principal": principal, "paramsDigest": vector.get("paramsDigest"),
            "method": decoded["method"], "target": decoded.get("target"),
            "maxRound": 8, "maxLength": len(vector["token"]), "nowMs": decoded["issuedAtMs"],
        }  # fmt: skip
        try:
            claims = open_token(vector["token"], opening)
        except Refused as refusal:
            checks.equal(name, str(refusal), "it opens")
            continue
        for field in ("issuedAtMs", "expiresAtMs", "method"):
            checks.equal(f"{name}: {field}", claims[field], decoded[field])
        if is_cursor:
            checks.equal(f"{name}: after", claims["cursor"]["after"], decoded["after"])
            continue
        state = claims["requestState"]
        checks.equal(f"{name}: target", claims["target"], decoded["target"])
        for field in ("chainId", "chainStartedMs", "chainExpiresMs", "round", "attempts", "handler", "catalogRevision"):
            checks.equal(f"{name}: {field}", state[field], decoded[field])
        questions = {each["key"]: each["digest"].hex() for each in state["questions"]}
        checks.equal(f"{name}: questions", questions, decoded["questions"] or {})
        answers = {each["key"]: each["response"].decode() for each in state["answers"]}
        checks.equal(f"{name}: answers", answers, decoded["answers"] or {})
        entries = {each["key"]: each["value"] for each in state["handlerState"]}
        checks.equal(f"{name}: handlerState", entries, decoded["handlerState"] or {})


def seal(key: Key, header: bytes, vector: dict) -> str:
    """Make the token of a vector: its claims and, in suite 2, its nonce are given."""
    claims, context = bytes.fromhex(vector["claims"]), context_parts(vector["context"])
    if vector["suite"] == HMAC_SHA256:
        message = prefixed(header, *context) + struct.pack(">I", len(claims)) + claims
        tag = sha256_mac(key.derive(MAC_LABELS[purpose_of(vector)], header), message)
        framed = header + claims + tag
    else:
        front = header + key.derive("countersign/v1/requeststate/commit", header)
        nonce = bytes.fromhex(vector["nonce"])
        cipher = AESGCM(key.derive("countersign/v1/requeststate/enc", header))
        framed = front + nonce + cipher.encrypt(nonce, claims, prefixed(front, *context))
    return base64.urlsafe_b64encode(framed).rstrip(b"=").decode()


def check_alterations(checks: Checks, vectors: list):
    for vector in vectors:
        text, opening = vector["token"], vector["opening"]
        for position, refusals in enumerate(vector["changes"]):
            for reason, characters in refusals.items():
                for character in characters:
                    altered = text[:position] + character + text[position + 1 :]
                    checks.refused(f"position {position} is {character!r}", altered, opening, reason)
        for reason, lengths in vector["truncations"].items():
            for length in lengths:
                checks.refused(f"cut to {length}", text[:length], opening, reason)


def check_collision(checks: Checks, vector: dict):
    sealed = bytes.fromhex(vector["ciphertext"]) + bytes.fromhex(vector["tag"])
    for name in ("A", "B"):
        cipher = AESGCM(bytes.fromhex(vector["encryptionKey" + name]))
        nonce, associated = bytes.fromhex(vector["nonce"]), bytes.fromhex(vector["associatedData"])
        try:
            plaintext = cipher.decrypt(nonce, sealed, associated).hex()
        except InvalidTag:
            plaintext = "it does not open"
        checks.equal(f"collision under key {name}", plaintext, vector["plaintext" + name])
    checks.refused("collision with its commitment", vector["token"], vector["opening"], vector["reason"])


def main() -> int:
    beside = pathlib.Path(__file__).resolve().parent.parent / "token" / "testdata" / "vectors"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    checks = Checks()

    def load(name: str):
        return json.loads((directory / name).read_text(encoding="utf-8"))

    check_keys(checks, load("keys.json"))
    check_labels(checks, load("labels.json"))
    check_tokens(checks, load("tokens.json"))
    for vector in load("refused.json"):
        checks.refused(vector["name"], vector["token"], vector["opening"], vector["reason"])
    check_alterations(checks, load("alterations.json"))
    check_collision(checks, load("collision.json"))

    print(f"{checks.count} checks, {checks.failures} disagree")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
