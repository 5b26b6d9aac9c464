# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much convolutions and products of a model compute, by the names of a program's steps."""

import math

#: What a step of each of these kinds computes.
_OPERATORS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
#: Steps further away from what they compute are those of something else.
MOST_STEPS_BACK = 8


def work_of_node(node, shapes, bytes_each=4):
    """{"flops", "bytes"} of a convolution or product by the shapes of its values; a multiply-add is two operations."""
    first, second, result = (shapes[name] for name in (node["inputs"][0], node["inputs"][1], node["outputs"][0]))
    if node["op"] == "Conv":
        terms = math.prod(second[1:])
        flops = 2 * math.prod(result) * terms
    elif node["op"] == "ConvTranspose":
        flops = 2 * math.prod(first) * math.prod(second[1:])
    else:
        transposed = node["op"] == "Gemm" and node["attributes"].get("transA", 0)
        flops = 2 * math.prod(result) * first[-2 if transposed else -1]
    return {"flops": flops, "bytes": bytes_each * sum(map(math.prod, (first, second, result)))}


def works(nodes, shapes, steps, bytes_each=4):
    """{step: work} for names of steps: of the convolution or product that a step ends with, or that is fused into it.

    A step has the name of the last node in it. What comes before another step belongs to that.
    """
    makers = {output: node for node in nodes for output in node["outputs"]}
    names = {node["name"]: node for node in nodes}
    found, taken = {}, set()
    for step in steps:
        front, seen = [names.get(step)], 0
        while front and seen < MOST_STEPS_BACK:
            node = front.pop(0)
            seen += 1
            if node is None or id(node) in taken or (node["name"] in steps and node["name"] != step):
                continue
            if node["op"] in _OPERATORS:
                found[step] = work_of_node(node, shapes, bytes_each)
                taken.add(id(node))
                break
            front += [makers.get(name) for name in node["inputs"]]
    return found


def of_graph(package, request):
    """`works` of an entry with a graph. In the process with PyTorch, on the CPU."""
    from . import inputs, peers
    from .probe import Absent

    try:
        from . import torch_model
    except ImportError as error:
        raise Absent(f"PyTorch is not here: {error}") from error
    graph, constants = peers.read_graph(package, request["entry"])
    shapes = {}
    torch_model.build(graph, constants, inputs.generate(request["entry"], "f32"), "cpu", shapes)
    return {"status": "ok", "message": "", "works": works(graph["nodes"], shapes, request["steps"])}
