# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What goes wrong in the compiler and the runtime."""


#: What calls return that Ctrl-C has ended.
INTERRUPTED = 130


class DovetailError(Exception):
    """The message is the compiler's or the runtime's; `code` is the command-line tools' exit code for it.

    2 usage, 3 file, 4 invalid model, 5 unsupported, 6 does not fit, 7 incompatible or damaged artifact, 8 device or
    communication, 9 internal.
    """

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        # Workers of other processes raise them, too.
        return type(self), (self.code, str(self))
