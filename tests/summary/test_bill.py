"""The bill of materials has everything that made a run, and `curate verify` checks it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.summary.bom import bill
from curation.summary.statements import is_signed, sign
from pipelines.cli import main


@pytest.fixture
def run(sample_run: Path, tmp_path: Path) -> Path:
    """A copy of the sample run."""
    return Path(shutil.copytree(sample_run, tmp_path / "out"))


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """Files with a private key and its public one."""
    pytest.importorskip("cryptography", reason="the extra `sign`")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    pem = form.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, form.PrivateFormat.PKCS8, form.NoEncryption()))
    spki = form.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(pem, spki))
    return private, public


def _verify(run: Path, *more: str | Path) -> int:
    return main(["verify", "--run", str(run), "--sample", "0", *map(str, more)])


def test_every_material_and_output_is_in_the_bill(run: Path) -> None:
    assert main(["summary", "--run", str(run)]) == 0
    written = json.loads((run / "summary/bom.cdx.json").read_text())
    found = {c["bom-ref"]: c for c in written["components"]}
    hashes = {
        name: c["hashes"][0]["content"]
        for name, c in found.items()
        if name.startswith(("output:", "recipe:"))
    }
    assert len(found) == len(written["components"]) and len(hashes) > 20
    for name, sha256 in hashes.items():
        path = run / name.partition(":")[2]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    root = hashlib.sha256((run / "SHA256SUMS").read_bytes()).hexdigest()
    assert written["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": root}]
    kinds = {name.partition(":")[0] for name in found}
    assert {"code", "model", "list", "input", "output", "recipe", "pkg"} == kinds
    assert "input:english-00000.warc.gz" in found and "model:tokenize/tokenizer" in found


def test_evaluation_sets_and_own_code_are_told_apart() -> None:
    manifest = {
        "settings": {"evals": {"x": {"files": ["evals/x.jsonl"]}}},
        "lists": {"evals/x.jsonl": "1" * 64, "lists/y.txt": "2" * 64},
        "code": {"mine.py:rule": "3" * 64},
    }
    written = bill("r", "0" * 64, None, {"decontaminate": manifest}, [], "4" * 64)
    names = {c["bom-ref"] for c in written["components"]}
    assert {"evaluation:evals/x.jsonl", "list:lists/y.txt"} <= names
    assert "code:decontaminate/mine.py:rule" in names


@pytest.mark.parametrize(
    "damage", ["filter/documents", "mix/documents", "tokenize/index"], ids=lambda d: d.split("/")[0]
)
def test_the_first_file_that_differs_is_named(
    run: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summary", "--run", str(run)]) == 0
    path = next((run / damage).glob("*.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    capsys.readouterr()
    assert _verify(run) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong: ")]
    assert wrong[0].startswith(f"wrong: {path.relative_to(run)}: not the bytes")


def test_a_bill_of_other_materials_is_no_bill_of_this_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summary", "--run", str(run)]) == 0
    path = run / "summary/bom.cdx.json"
    assert _verify(run) == 0
    written = json.loads(path.read_text())
    changed = next(c for c in written["components"] if c["bom-ref"] == "model:tokenize/tokenizer")
    changed["hashes"][0]["content"] = "0" * 64
    path.write_text(json.dumps(written))
    capsys.readouterr()
    assert _verify(run) == 1
    assert "bom.cdx.json: model:tokenize/tokenizer: another hash" in capsys.readouterr().out
    path.write_text("{")
    assert _verify(run) == 1
    assert "bom.cdx.json: damaged" in capsys.readouterr().out


def test_a_signature_is_checked(
    run: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = keys
    assert main(["summary", "--run", str(run), "--sign", str(private)]) == 0
    assert _verify(run, "--key", public) == 0
    signature = run / "summary/bom.cdx.json.sig"
    signature.write_bytes(bytes(64))
    assert _verify(run, "--key", public) == 1
    assert "not the signature" in capsys.readouterr().out
    assert main(["summary", "--run", str(run)]) == 0  # a bill without one takes it away
    assert _verify(run, "--key", public) == 1
    assert "not signed" in capsys.readouterr().out


def test_signatures_are_those_of_openssl(keys: tuple[Path, Path], tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    private, public = keys
    (tmp_path / "data").write_bytes(b"bill")
    (tmp_path / "sig").write_bytes(sign(b"bill", private.read_bytes(), "key"))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public), "-rawin"]
    done = subprocess.run(
        [*command, "-in", str(tmp_path / "data"), "-sigfile", str(tmp_path / "sig")], check=False
    )
    assert done.returncode == 0
    assert is_signed(b"bill", (tmp_path / "sig").read_bytes(), public.read_bytes(), "pub")
    with pytest.raises(ConfigError, match=r"pub\.pem: not a private key"):
        sign(b"bill", public.read_bytes(), "pub.pem")
