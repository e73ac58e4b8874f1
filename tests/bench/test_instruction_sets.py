"""What the comparisons of speed check in the libraries' own reports."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from contender import environment, parse
from instruction_sets import (
    NAMES,
    contradictions,
    flags_within,
    kernel_set,
    lacking,
    library_reports,
    named_sets,
)
from tracks import GAME, QUICK, RUNS
from train_ours import benchmark_spec, our_software

LOG = """\
onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71)
onednn_verbose,v1,info,cpu,isa:Intel AVX2
onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx2,forward_training,src:f32,mb32,25.5
onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32,32x32,21.6
onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx2,forward_training,src:f32,mb32,25.5
MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture Intel(R) Advanced \
Vector Extensions 2 (Intel(R) AVX2) enabled processors, Lnx 2.45GHz lp64 gnu_thread
MKL_VERBOSE SGEMM(N,N,512,32,3136,0x7f,0x7f,512,0x55,3136) 23.08ms CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2
"""
KEPT = {
    "cpu_capability": "AVX2",
    "onednn": "Intel AVX2",
    "onednn_implementations": {"convolution,jit:avx2": 2, "reorder,jit:uni": 1},
    "mkl": "Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors",
    "mkl_calls": 1,
}
MKL_AVX512 = "Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled processors"


def test_reports_are_read_from_the_logs_of_the_libraries():
    assert library_reports(LOG) == {key: KEPT[key] for key in KEPT if key != "cpu_capability"}


def test_a_library_that_was_not_called_reports_nothing():
    assert library_reports("chatter\n")["onednn"] is None
    assert library_reports("chatter\n")["mkl"] is None


def test_reports_that_keep_to_the_instruction_set_do_not_contradict_it():
    assert contradictions("avx2", KEPT) == []


@pytest.mark.parametrize(
    "contrary",
    [
        {"cpu_capability": "AVX512"},
        {"onednn": "Intel AVX-512 with Intel DL Boost and bfloat16 support"},
        {"onednn": "Intel SSE4.1"},
        {"onednn_implementations": {"convolution,brgconv:avx512_core": 1}},
        {"mkl": MKL_AVX512},
        {"kernels": ["fp32 vectors", "portable"]},
        {"kernels": ["fp32 vectors of NEON", "portable"]},
        {"kernels": ["bf16 tiles", "portable"]},
    ],
    ids=lambda contrary: next(iter(contrary.values())) if len(contrary) == 1 else None,
)
def test_each_report_of_another_instruction_set_is_found(contrary):
    assert contradictions("avx2", KEPT | contrary)


@pytest.mark.parametrize(
    "quiet",
    [
        {"mkl": "Intel(R) Architecture processors"},  # on a processor that is not Intel's
        {"onednn": None, "onednn_implementations": {}, "mkl": None},  # kernels of ours computed all
        {"kernels": ["portable"]},
    ],
)
def test_reports_that_name_no_instruction_set_are_no_contradiction(quiet):
    assert contradictions("avx2", KEPT | quiet) == []


def test_kernels_are_recognized_by_their_names():
    names = ("fp32 vectors of AVX2", "fp32 vectors of NEON", "bf16 vectors", "bf16 tiles", "portable")
    assert [kernel_set(name) for name in names] == ["avx2", "neon", "avx512", "amx", None]


def test_tile_registers_are_beyond_avx512():
    kept = KEPT | {"cpu_capability": "AVX512", "onednn": "Intel AVX-512", "mkl": MKL_AVX512}
    assert contradictions("avx512", kept | {"kernels": ["bf16 vectors"]}) == []
    assert contradictions("avx512", kept | {"kernels": ["bf16 tiles"]}) == ["our kernels are 'bf16 tiles'"]


def test_native_holds_to_nothing():
    assert contradictions("native", KEPT | {"cpu_capability": "AVX512"}) == []


def test_names_of_reports_and_implementations_are_recognized():
    assert named_sets(MKL_AVX512) == {"avx512"}
    assert named_sets("brg_matmul:avx10_1_512_amx") == {"avx512", "amx"}
    assert named_sets("Intel AVX2 with Intel DL Boost") == {"avx2"}
    assert named_sets("jit:uni") == set()


def test_every_variable_is_set_for_the_contenders(monkeypatch):
    monkeypatch.setenv("ATARI_DQN_ISA", "none")
    held = environment(2, "avx2")
    assert {name: held[name] for name in NAMES} == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATARI_DQN_ISA": "avx2",
    }


def test_native_removes_the_variables_that_were_set(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    assert NAMES.isdisjoint(environment(2))


def test_contenders_are_not_given_our_way_of_waiting(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert "OMP_WAIT_POLICY" not in environment(2)


def test_an_instruction_set_that_the_processor_lacks_is_named():
    assert lacking("avx512", ("avx2",)) == ("avx512f",)
    assert lacking("avx2", ("avx2",)) == ()
    assert lacking("avx2", None) == ("avx2",)


def test_flags_beyond_an_instruction_set_are_left_out():
    flags = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    assert flags_within("avx2", flags) == ("avx2",)
    assert flags_within("avx512", flags) == ("avx2", "avx512f", "avx512_bf16")
    assert flags_within("none", flags) == flags


def test_auto_is_resolved_as_on_a_processor_of_the_instruction_set(monkeypatch):
    monkeypatch.setattr("atari_dqn.machine.hardware.cpu_flags", lambda: ("avx2", "avx512f", "avx512_bf16"))
    own = {"game": GAME, "spec": RUNS / f"{QUICK}.toml", "set": ["network.kind=nature"]}
    common = {
        "envs": 8,
        "threads": 2,
        "capacity_steps": 9_000,
        "prefill_steps": 900,
        "target_period_updates": 50,
        "epsilon": 0.1,
    }
    options = Namespace(**own, **common)
    assert benchmark_spec(options).learner.precision == "bf16"
    monkeypatch.setenv("ATARI_DQN_ISA", "avx2")
    assert benchmark_spec(options).learner.precision == "fp32"


def test_our_worker_reports_what_computed():
    assert {"torch", "cpu_capability", "kernels", "openmp"} == our_software("fp32").keys()


def test_a_result_is_read_where_a_log_shares_its_line():
    output = 'onednn_verbose,v1,pri{"frames_per_second": 3.5, "torch": "2"}\nmitive,exec\n'
    assert parse(output) == {"frames_per_second": 3.5, "torch": "2"}
