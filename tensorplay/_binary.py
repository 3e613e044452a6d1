"""Loads the compiled library before anything else does.

Its BLAS would start a thread for each core as it is loaded, all of which spin for a tenth of a second. The library
splits products over threads of its own.
"""

import os

_NAME = "OPENBLAS_NUM_THREADS"
_before = os.environ.get(_NAME)
os.environ[_NAME] = "1"
try:
    from . import _C as _C
finally:
    if _before is None:
        del os.environ[_NAME]
    else:
        os.environ[_NAME] = _before
