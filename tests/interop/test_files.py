"""save and load, pickles of tensors and generators, and what is said where the package for files is missing."""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from pathlib import Path

import pytest
import tensorplay as tp

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def tensors() -> dict[str, tp.Tensor]:
    made = {n: tp.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tp, n)) for n in NAMES}
    return {**made, "empty": tp.zeros(2, 0), "scalar": tp.tensor(2.5), "turned": tp.arange(6).reshape(2, 3).T}


def test_round_trip(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    kept = tensors()
    memory = io.BytesIO()
    tp.save(kept, tmp_path / "a.safetensors")
    tp.save(kept, memory)
    memory.seek(0)
    for back in (tp.load(tmp_path / "a.safetensors"), tp.load(memory)):
        assert set(back) == set(kept)
        for name, t in kept.items():
            assert back[name].dtype is t.dtype and back[name].shape == t.shape
            assert tp.equal(back[name], t), name
    back[NAMES[1]][0] = 7  # memory of its own, writable


def test_refusals(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    with pytest.raises(TypeError, match="save: expected a dictionary"):
        tp.save(tp.ones(2), tmp_path / "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="save: expected tensors by name, got int under 'n'"):
        tp.save({"n": 3}, tmp_path / "a")
    with pytest.raises(TypeError, match="complex128.*view_as_real"):
        tp.save({"z": tp.ones(2, dtype=tp.complex128)}, tmp_path / "a")
    (tmp_path / "b").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match=r"load: .*no safetensors file"):
        tp.load(tmp_path / "b")
    with zipfile.ZipFile(tmp_path / "c", "w") as archive:  # what torch.save writes
        archive.writestr("data.pkl", pickle.dumps({}))
    for content in ((tmp_path / "c").read_bytes(), pickle.dumps({}, protocol=2)):
        (tmp_path / "d").write_bytes(content)
        with pytest.raises(ValueError, match=r"files of torch.save are not read: there, safetensors.torch.save_file"):
            tp.load(tmp_path / "d")


def test_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for call in (lambda: tp.save({}, tmp_path / "a"), lambda: tp.load(tmp_path / "a")):
        with pytest.raises(ImportError, match="extra 'files'"):
            call()


def test_pickles() -> None:
    for name, t in {**tensors(), "wide": tp.ones(2, dtype=tp.complex128)}.items():
        back = pickle.loads(pickle.dumps(t))
        assert back.dtype is t.dtype and tp.equal(back, t), name
    g = tp.Generator().manual_seed(5)
    tp.rand(3, generator=g)
    back_g = pickle.loads(pickle.dumps(g))
    assert back_g.initial_seed() == 5
    assert tp.rand(4, generator=g).tolist() == tp.rand(4, generator=back_g).tolist()


def test_what_load_takes_of_other_librarys_arguments(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    path = tmp_path / "a.safetensors"
    tp.save({"a": tp.ones(2)}, path)
    for place in ("cpu", tp.device("cpu"), None):
        for only in (True, None):
            assert tp.load(path, map_location=place, weights_only=only)["a"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="load: map_location='cuda': .*CPU"):
        tp.load(path, map_location="cuda")
    with pytest.raises(ValueError, match="load: weights_only=False: .*arrays alone"):
        tp.load(path, weights_only=False)
