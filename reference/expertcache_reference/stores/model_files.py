"""Models as they are distributed: GGUF and safetensors, in one file or in shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from expertcache_reference.stores import gguf_header, safetensors_header
from expertcache_reference.stores.assembling import assembled
from expertcache_reference.stores.reading import MAX_HEADER, Opened, Opener, parsed
from expertcache_reference.stores.store import FileStore
from expertcache_reference.stores.tensors import DAMAGED, Header
from expertcache_spec.layout.files import WrongFile

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf|\.safetensors)")
_MOST_SHARDS = 10_000
_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk", "top_k")
"""What configurations call the number of experts that a token asks for."""
_LAYERS = ("num_hidden_layers", "num_layers")


def open_gguf(path: Path, machine: Opener, top_k: int | None) -> FileStore:
    """The store of a GGUF file, or of all shards of which it is one; raises `WrongFile`."""
    names = _shards(path)
    headers = [_header(path.with_name(name), machine, gguf_header.read) for name in names]
    for number, header in enumerate(headers):
        said = (header.numbers.get("split.no", 0), header.numbers.get("split.count", 1))
        if len(names) > 1 and said != (number, len(names)):
            raise WrongFile(
                f"says that it is shard {said[0] + 1} of {said[1]}",
                where=str(path.with_name(header.file)),
                cure=DAMAGED,
            )
    return assembled("gguf", path.parent, headers, headers[0].numbers, top_k, machine)


def open_safetensors(path: Path, machine: Opener, top_k: int | None) -> FileStore:
    """The store of a safetensors file, of all shards of which it is one, or of an index; raises `WrongFile`."""
    folder, index = path.parent, _index(path, machine) if path.name.endswith(".index.json") else {}
    names = sorted(set(index.values())) if index else _shards(path)
    headers = [_header(folder / name, machine, safetensors_header.read) for name in names]
    listed = {tensor.name: header.file for header in headers for tensor in header.tensors}
    for tensor, file in index.items():
        if listed.get(tensor) != file:
            raise WrongFile(
                f"does not hold {tensor[:80]!r}, which {path.name} says it does", where=str(folder / file), cure=DAMAGED
            )
    numbers = _numbers(headers[0].about) | _config(folder, machine)
    return assembled("safetensors", folder, headers, numbers, top_k, machine)


def _header(path: Path, machine: Opener, read: Callable[[Opened], Header]) -> Header:
    with Opened(path, machine) as file:
        return read(file)


def _shards(path: Path) -> list[str]:
    """The names of all shards of which the file is one; its own where it is none."""
    found = _SHARD.fullmatch(path.name)
    if found is None:
        return [path.name]
    count = int(found["count"])
    if not 1 <= int(found["number"]) <= count <= _MOST_SHARDS:
        raise WrongFile("a shard that cannot be", where=str(path), cure="give it back its name")
    return [f"{found['stem']}-{number:05d}-of-{count:05d}{found['suffix']}" for number in range(1, count + 1)]


def _json(path: Path, machine: Opener) -> dict[str, Any]:
    with Opened(path, machine) as file:
        if file.size > MAX_HEADER:
            raise WrongFile(f"{file.size} bytes of JSON", where=str(path), cure=DAMAGED)
        return parsed(file.read(0, file.size), str(path))


def _index(path: Path, machine: Opener) -> dict[str, str]:
    """Tensor to file, of `*.safetensors.index.json`."""
    found = _json(path, machine).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise WrongFile("no weight_map", where=str(path), cure=DAMAGED)
    for file in found.values():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise WrongFile(f"{file!r} is no file beside it", where=str(path), cure=DAMAGED)
    if len(set(found.values())) > _MOST_SHARDS:
        raise WrongFile("too many files", where=str(path), cure=DAMAGED)
    return found


def _config(folder: Path, machine: Opener) -> dict[str, int]:
    """The numbers of the `config.json` beside a model, if there is one."""
    try:
        config = _json(folder / "config.json", machine)
    except WrongFile as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    inner = config.get("text_config")
    return _numbers({**inner, **config} if isinstance(inner, dict) else config)


def _numbers(config: Mapping[str, Any]) -> dict[str, int]:
    """top_k and layers, where the configuration says them."""
    return {
        name: found
        for name, keys in (("top_k", _TOP_K), ("layers", _LAYERS))
        if (found := _whole(config, keys)) is not None
    }


def _whole(config: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value):
            return int(value)
        if type(value) is int and 0 < value < 10**6:
            return value
    return None
