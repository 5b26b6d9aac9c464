# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles each model of a folder, and checks that it fails with the message that its `# ERROR:` line quotes.

Usage: expect_errors.py DOVETAIL FOLDER
"""

import pathlib
import subprocess
import sys

# Exit codes that stand for a model that is not accepted: invalid, unsupported.
EXPECTED_CODES = (4, 5)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    models = sorted(folder.glob("*.onnxtxt"))
    if not models:
        sys.exit(f"no models in {folder}")
    failures = 0
    for model in models:
        first = model.read_text().splitlines()[0]
        message = first.removeprefix("# ERROR: ")
        if message == first or not message:
            sys.exit(f"{model} does not begin with '# ERROR: '")
        result = subprocess.run([program, "compile", model, "--compile-to=import"], capture_output=True, text=True)
        if result.returncode not in EXPECTED_CODES or message not in result.stderr:
            failures += 1
            print(f"{model.name}: exit code {result.returncode}, expected '{message}', got:\n{result.stderr}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
