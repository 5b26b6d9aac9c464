# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalisations."""

from .draft import generates


@generates("BatchNormalization", weight=4)
def batch_norm(d, op):
    opset = d.since(7)
    shape = d.shape(2, 5, 7)
    channels = shape[1]
    constant = 0.8
    inputs = [d.input(d.values(shape))]
    inputs += [d.either(d.values(channels), constant) for _ in range(3)]
    inputs.append(d.either(d.values(channels, low=0.1, high=3), constant))
    d.node(
        op,
        *inputs,
        epsilon=d.pick(None, 1e-3, 0.1),
        momentum=d.pick(None, 0.5),
        training_mode=d.pick(None, 0) if opset >= 14 else None,
    )


@generates("InstanceNormalization", weight=5)
def instance_norm(d, op):
    d.since(7)
    shape = d.shape(3, 5, 8)
    # A single element normalises to noise around zero.
    shape[2] += 1
    scale, shift = d.values(shape[1]), d.values(shape[1])
    d.node(
        op,
        d.input(d.values(shape)),
        d.either(scale, 0.8),
        d.either(shift, 0.8),
        epsilon=d.pick(None, 1e-3, 0.1),
    )


@generates("GroupNormalization", weight=5)
def group_norm(d, op):
    d.since(21)  # Until 20 it had another meaning and is deprecated.
    groups = d.integer(1, 4)
    channels = groups * d.integer(1, 4)
    shape = [d.integer(1, 3), channels, *d.shape(1, 3, 8)]
    shape[2] += 1
    x = d.values(shape)
    y = d.node(
        op,
        d.input(x),
        d.either(d.values(channels), 0.8),
        d.either(d.values(channels), 0.8),
        num_groups=groups,
        epsilon=d.pick(None, 1e-3, 0.1),
    )
    d.declare(y, like=x)


@generates("LayerNormalization", weight=5)
def layer_norm(d, op):
    d.since(17)
    shape = d.shape(2, 4, 8)
    shape[-1] += 1
    axis = d.axis(len(shape))
    inner = shape[axis:]
    inputs = [d.input(d.values(shape)), d.either(d.values(inner), 0.8)]
    if d.chance(0.7):
        inputs.append(d.either(d.values(inner), 0.8))
    d.node(
        op,
        *inputs,
        axis=axis if axis != -1 or d.chance(0.5) else None,
        epsilon=d.pick(None, 1e-3, 0.1),
        outputs=d.pick(1, 1, 1, 3),
    )


@generates("Softmax", "LogSoftmax", weight=4)
def softmax(d, op):
    opset = d.since(7)
    shape = d.shape(1 if opset >= 13 else 2, 4)
    axis = d.axis(len(shape), negative=opset >= 11)
    default = -1 if opset >= 13 else 1
    # Large values: exp overflows unless the maximum is subtracted.
    x = d.values(shape, low=-3, high=d.pick(3, 100))
    d.node(op, d.input(x), axis=None if axis == default and d.chance(0.5) else axis)


