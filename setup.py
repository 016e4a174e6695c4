"""Builds the Python package with CMake: pip install --no-index --no-build-isolation .

For `scripts/build -DSLUICE_PYTHON=ON` nothing of this is needed. SLUICE_MODULE may name the module of such a build,
build/python/sluice/_C.*.so, which is then taken instead of building one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class CMakeBuild(build_ext):
    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.environ.get("SLUICE_MODULE") or self.built_module(), target)

    def built_module(self) -> Path:
        """Of the target sluice_python."""
        folder = Path(self.build_temp).resolve()
        configure = ["cmake", "-S", ".", "-B", str(folder), "-G", "Ninja"]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DSLUICE_BENCH=OFF"]
        configure += ["-DSLUICE_PYTHON=ONLY", f"-DPython_EXECUTABLE={sys.executable}"]
        configure += ["-DSLUICE_TORCH=OFF"]  # the module takes PyTorch from that Python
        configure += ["-DCMAKE_UNITY_BUILD=ON"]  # a third of the time
        subprocess.check_call(configure)
        jobs = str(os.cpu_count() or 1)
        subprocess.check_call(
            ["cmake", "--build", str(folder), "--target", "sluice_python", "--parallel", jobs]
        )
        (module,) = (folder / "python" / "sluice").glob("_C.*.so")
        return module


setup(
    name="sluice",
    version="0.1.0",
    description="Data-parallel training over slow networks, for PyTorch",
    license="Apache-2.0",
    package_dir={"": "python"},
    packages=["sluice", "sluice.torch"],
    package_data={"sluice": ["py.typed"]},
    ext_modules=[Extension("sluice._C", [])],
    cmdclass={"build_ext": CMakeBuild},
    zip_safe=False,
)
