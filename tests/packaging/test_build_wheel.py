"""Names of wheels, and which are refused, by scripts/build_wheel.py; test_installed_wheel.py builds one."""

import runpy
import zipfile
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "build_wheel.py"))
TABLE = """
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) memcpy
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000      DF *UND*  0000000000000000 (GLIBCXX_3.4.11) _ZNSt18condition_variable10notify_allEv
0000000000000000  w   DF *UND*  0000000000000000 (CXXABI_1.3) __cxa_finalize
0000000000003f10 g    DF .text  0000000000000041  Base        kernel_sources
"""


def test_newest_version_of_each_system_library_is_found() -> None:
    found = SCRIPT["newest_versions"](TABLE)
    assert found == {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 11), "CXXABI": (1, 3)}


@pytest.mark.parametrize(("needed", "tag"), [((2, 34), "2_34"), ((2, 14), "2_28"), ((2, 2, 5), "2_28")])
def test_wheel_is_named_after_the_glibc_that_it_needs(needed: tuple[int, ...], tag: str) -> None:
    assert SCRIPT["platform_tag"]({"GLIBC": needed}, "x86_64") == f"manylinux_{tag}_x86_64"


def test_wheel_that_needs_a_newer_library_of_c_plus_plus_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"needs GLIBCXX_3\.4\.32"):
        SCRIPT["platform_tag"]({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 32)}, "x86_64")


def test_wheel_without_a_library_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("atari_dqn/fast/cpu/_threads.so", b"")
    expected = {"atari_dqn/fast/cpu/_threads.so", "atari_dqn/fast/cpu/_portable.so"}
    with pytest.raises(SystemExit, match=r"not compiled: atari_dqn/fast/cpu/_portable\.so;"):
        SCRIPT["refuse_missing"](tmp_path / "a.whl", expected)


def test_libraries_of_every_instruction_set_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    names = ("threads", "portable", "portable_avx2", "portable_avx512", "products_avx2", "products_avx512")
    assert SCRIPT["expected_libraries"]() == {f"atari_dqn/fast/cpu/_{name}.so" for name in names}
