# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expected outputs: ONNX Runtime's, or the ONNX reference's where ONNX Runtime has no kernel."""

from dovetail_models import onnxruntime_session


class InvalidModel(Exception):
    """Neither oracle accepts the model: the test is wrong, not the compiler."""


def run_reference(model, inputs):
    """All outputs by name, by the evaluator of the onnx package."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs)))


def expected_outputs(model, inputs, prefer_reference=False):
    """All outputs by name. `prefer_reference` is for what ONNX Runtime is known to compute wrongly."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    if prefer_reference:
        return run_reference(model, inputs)
    try:
        # Unoptimised: the operator as written, not what it is fused into.
        session = onnxruntime_session(model, threads=1, optimise=False)
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))
    except state.NotImplemented:
        return run_reference(model, inputs)
    except Exception as error:
        raise InvalidModel(str(error)) from error
