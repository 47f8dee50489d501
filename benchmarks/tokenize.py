"""`python benchmarks/tokenize.py ...`: see tokenization.py beside it, which this runs.

The standard library has a module of this name too, and a script's folder is searched first. Run as
a script, this takes its folder off the search path while libraries load; imported by name from
another script of this folder, it gives way to the standard library's module.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    import runpy

    sys.path = [p for p in sys.path if os.path.abspath(p or ".") != _FOLDER]
    runpy.run_path(os.path.join(_FOLDER, "tokenization.py"), run_name="__main__")
else:
    import importlib.util

    _path = os.path.join(os.path.dirname(os.__file__), "tokenize.py")
    _spec = importlib.util.spec_from_file_location("tokenize", _path)
    assert _spec is not None and _spec.loader is not None
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["tokenize"] = _module
    _spec.loader.exec_module(_module)
