"""`.pt`, `.pth`, `.bin`, `.ckpt`: torch's own files, read for their weights only."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, Stored, unreadable

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")


def read(path: Path) -> Content:
    """The tensors of a checkpoint, by name.

    Raises:
        UsageError: It cannot be read, or holds other things than weights.
    """
    from traindx.norm.modules.checkpoints import read as read_checkpoint

    _refuse_packed(path)
    return Content(
        path, {parts_of(n): stored(path, n, t) for n, t in read_checkpoint(path).items()}
    )


def parts_of(name: str) -> Name:
    """A name of torch's as a path: its parts are parted by dots only.

    A pickle may hold halves of UTF-16 pairs, which cannot be written anywhere else.
    """
    return tuple(name.encode("utf-8", "backslashreplace").decode("utf-8").split("."))


def stored(path: Path, name: str, tensor: Tensor) -> Stored:
    """A tensor as an array in NumPy; bfloat16 is widened, which changes nothing."""
    import torch

    def load() -> Array:
        plain = tensor.detach().to_dense().cpu()  # fails if quantized or without data
        return (plain.float() if plain.dtype is torch.bfloat16 else plain).numpy()

    held = tensor.untyped_storage().nbytes() if tensor.layout is torch.strided else 0
    if tensor.layout is torch.strided and tensor.numel() * tensor.element_size() > held:
        return Stored(tuple(tensor.shape), _claimed(path, name))
    return Stored(tuple(tensor.shape), load)


def _claimed(path: Path, name: str) -> Any:
    def load() -> Array:
        why = say("`{name}` claims more numbers than are stored", name=name)
        raise unreadable(path, why)

    return load


def _refuse_packed(path: Path) -> None:
    """A zip of torch is not packed; what is may unpack to more than there is memory."""
    try:
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            packed = [i for i in archive.infolist() if i.compress_type != zipfile.ZIP_STORED]
    except OSError as error:
        raise unreadable(path, error.strerror or error) from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise unreadable(path, say("it is damaged, or no checkpoint of torch")) from error
    if packed:
        raise unreadable(path, say("its parts are compressed, which torch never does"))


def write(path: Path, arrays: Mapping[Name, Array], *, note: str) -> None:
    """A new state dict."""
    import torch

    del note
    made = cast("Any", torch).from_numpy
    packed = io.BytesIO()  # what torch writes to a full disk itself fails without saying why
    torch.save({".".join(name): made(values.copy()) for name, values in arrays.items()}, packed)
    path.write_bytes(packed.getvalue())
