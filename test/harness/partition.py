# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mesh and the shardings stated for some tensors, as the command line spells them."""

import dataclasses
import math

import numpy as np

#: The meshes that tests cover: 1, 2, 3, 4 and 2x2 ranks.
MESHES = ({"y": 1}, {"y": 2}, {"y": 3}, {"y": 4}, {"y": 2, "x": 2})


@dataclasses.dataclass
class Partition:
    """`shards` maps a tensor to one entry a dimension: "_", an axis, or axes joined by "+".

    `sizes` maps (tensor, dimension) to the extents of its shards; those left out are balanced. `objective` is
    what the compiler decides the rest by: by time, small models would be computed whole on every rank.
    """

    mesh: dict
    shards: dict = dataclasses.field(default_factory=dict)
    sizes: dict = dataclasses.field(default_factory=dict)
    objective: str = "bytes"

    @property
    def ranks(self):
        return math.prod(self.mesh.values())

    def split(self, tensor, rank, dim, axes, sizes=None):
        """Splits dimension `dim` of `tensor`, which has `rank` dimensions, over `axes`."""
        self.shards.setdefault(tensor, ["_"] * rank)[dim] = axes
        if sizes is not None:
            self.sizes[tensor, dim] = list(map(int, sizes))
        return self

    def forget(self, tensor):
        """States nothing for `tensor`."""
        del self.shards[tensor]
        self.sizes = {key: sizes for key, sizes in self.sizes.items() if key[0] != tensor}

    def parts(self, axes):
        """How many shards `axes`, such as "y+x", make."""
        return math.prod(self.mesh[a] for a in axes.split("+"))

    def flags(self):
        """Command-line arguments for `dovetail compile` and `dovetail verify`."""
        flags = ["--mesh", ",".join(f"{name}={size}" for name, size in self.mesh.items())]
        for tensor, spec in self.shards.items():
            flags += ["--shard", f"{tensor}={','.join(spec)}"]
        for (tensor, dim), sizes in self.sizes.items():
            flags += ["--sizes", f"{tensor}:{dim}={','.join(map(str, sizes))}"]
        return flags + ["--objective", self.objective]

    def __str__(self):
        return " ".join(self.flags())


def uneven_sizes(extent, parts):
    """Visibly uneven sizes that sum to `extent`: later shards are larger."""
    weights = np.arange(1, parts + 1)
    bounds = np.concatenate([[0], np.cumsum(weights)]) * extent // weights.sum()
    return np.diff(bounds).tolist()


def sizes_with_empty_shard(extent, parts):
    """Balanced sizes with nothing for the second shard (for the first if there is only one)."""
    if parts == 1:
        return [extent]
    bounds = np.arange(parts) * extent // (parts - 1)
    sizes = np.diff(bounds).tolist()
    return [sizes[0], 0, *sizes[1:]]


def random_sizes(rng, extent, parts):
    """Sizes that sum to `extent`: uneven, with empty shards, or with some of one or two elements."""
    kind = rng.integers(4)
    if kind == 0:
        cuts = np.sort(rng.integers(0, extent + 1, parts - 1))
    elif kind == 1:
        cuts = np.sort(rng.choice([0, extent], parts - 1))
    elif kind == 2:
        small = rng.integers(0, 3, parts)
        small[rng.integers(parts)] = extent
        cuts = np.minimum(np.cumsum(small)[:-1], extent)
    else:
        return uneven_sizes(extent, parts)
    return np.diff(np.concatenate([[0], cuts, [extent]])).tolist()


def random_partition(rng, shapes, outputs=None):
    """A random mesh and shardings for the tensors of `shapes` (name to shape).

    Shardings are sometimes stated for tensors of `outputs` as well.
    """
    mesh = dict(MESHES[rng.choice(len(MESHES), p=(0.04, 0.24, 0.24, 0.24, 0.24))])
    partition = Partition(mesh)
    stated = [name for name, shape in shapes.items() if len(shape) and rng.random() < 0.8]
    candidates = [name for name, shape in shapes.items() if len(shape)]
    if not stated and candidates:
        stated = [candidates[rng.integers(len(candidates))]]
    stated += [n for n, shape in (outputs or {}).items() if len(shape) and rng.random() < 0.15]
    for name in stated:
        shape = shapes[name] if name in shapes else outputs[name]
        split_randomly(rng, partition, name, shape)
    return partition


def split_alike(names, rank, dim, sizes):
    """Splits dimension `dim` of all tensors of these names, which have `rank` dimensions, over one axis into `sizes`."""
    partition = Partition({"y": len(sizes)})
    for name in names:
        partition.split(name, rank, dim, "y", sizes)
    return partition


def split_randomly(rng, partition, name, shape, first=0):
    """Splits random dimensions of tensor `name`, from `first` on, over most axes of the mesh of `partition`."""
    axes_of = {}
    for axis in rng.permutation(list(partition.mesh)):
        if rng.random() < 0.9:
            axes_of.setdefault(int(rng.integers(first, len(shape))), []).append(str(axis))
    for dim, axes in sorted(axes_of.items()):
        axes = "+".join(axes)
        parts = partition.parts(axes)
        sizes = random_sizes(rng, shape[dim], parts) if rng.random() < 0.65 else None
        partition.split(name, len(shape), dim, axes, sizes)
