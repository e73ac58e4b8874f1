import pytest

from atari_dqn.machine.hardware import Gpu, Hardware

GB = 10**9


@pytest.fixture
def laptop() -> Hardware:
    """Return the hardware of a laptop: two cores, 16 GB, no GPU."""
    return Hardware(
        cpu_model="Example", cores_physical=2, cores_logical=2, cores_usable=2, cpu_flags=("avx2",),
        memory_bytes=16 * GB, memory_available_bytes=12 * GB, disk_free_bytes=100 * GB,
        shared_memory_free_bytes=GB, gpus=(),
    )  # fmt: skip


@pytest.fixture
def gpu() -> Gpu:
    return Gpu(name="Example GPU", memory_bytes=24 * GB, memory_free_bytes=20 * GB, capability=(8, 9))
