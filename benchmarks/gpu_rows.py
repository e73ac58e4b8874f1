"""What `gpu.py` measures, and what is aimed at."""

from __future__ import annotations

from pathlib import Path

RUNS = Path(__file__).parents[1] / "runs"
TRACK_A, TRACK_B = RUNS / "pong_trackA.toml", RUNS / "pong_trackB.toml"
BF16, EAGER = "learner.precision=bf16", "system.cuda_graphs=false"
QUICKEST = (BF16, "learner.deterministic=false")

FRAMES = {
    "A, 64 environments, bf16": (TRACK_A, 64, (BF16,)),
    "A, 64 environments, fp32": (TRACK_A, 64, ()),
    "A, 1 environment, fp32": (TRACK_A, 1, ()),
    "B, 64 environments, bf16": (TRACK_B, 64, (BF16,)),
    "B, 64 environments, fp32": (TRACK_B, 64, ()),
    "A, 128 environments, bf16": (TRACK_A, 128, (BF16,)),
    "A, 64 environments, bf16, without graphs": (TRACK_A, 64, (BF16, EAGER)),
    "A, 64 environments, bf16, not deterministic": (TRACK_A, 64, QUICKEST),
}
"""Training speeds, the most important first: spec, environments and further keys."""
UPDATES = {
    "uniform, fp32": (TRACK_A, ()),
    "uniform, bf16": (TRACK_A, (BF16,)),
    "prioritized, fp32": (TRACK_A, ("toggles.prioritized=true",)),
    "Track B, bf16": (TRACK_B, (BF16,)),
    "BTR, batch 256, bf16": (RUNS / "btr.toml", (BF16,)),
    "Track B, fp32": (TRACK_B, ()),
    "prioritized, bf16": (TRACK_A, ("toggles.prioritized=true", BF16)),
    "uniform, bf16, not deterministic": (TRACK_A, QUICKEST),
    "SPR, fp32": (RUNS / "spr.toml", ()),
}
"""Updates, of batch 32 but where another is named."""
COMPILED = {
    "uniform, bf16": (TRACK_A, (BF16,)),
    "BTR, batch 256, bf16": (RUNS / "btr.toml", (BF16,)),
    "Track B, bf16": (TRACK_B, (BF16,)),
    "uniform, fp32": (TRACK_A, ()),
    "SPR, fp32": (RUNS / "spr.toml", ()),
}
"""Updates that are measured compiled too."""
AGENTS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "BTR, bf16, compiled": ("btr", 64, (BF16, "learner.compile=true")),
    "BTR, bf16": ("btr", 64, (BF16,)),
    "BBF at a replay ratio of 2": ("bbf_rr2", 1, ()),
    "PQN": ("pqn", 128, ()),
    "R2D2, 64 environments, bf16": ("r2d2", 64, (BF16,)),
    "Rainbow, 64 environments, bf16": ("rainbow", 64, (BF16,)),
    "SPR": ("spr", 1, ()),
    "DER": ("atari100k_der", 1, ()),
    "BBF at a replay ratio of 2, bf16": ("bbf_rr2", 1, (BF16,)),
    "IQN, 64 environments, bf16": ("iqn", 64, (BF16,)),
    "SR-SPR": ("sr_spr", 1, ()),
    "C51, 64 environments, bf16": ("c51", 64, (BF16,)),
    "QR-DQN, 64 environments, bf16": ("qr_dqn", 64, (BF16,)),
    "BTR, fp32": ("btr", 64, ()),
}
"""Training speeds of the other agents, the most important first: spec, environments and further keys."""
TARGETS = {
    "A, 64 environments, bf16": 100_000,
    "A, 1 environment, fp32": 10_000,
    "B, 64 environments, bf16": 80_000,
    "uniform, fp32": 120,
    "prioritized, fp32": 160,
    "seconds to 18": 180,
    "BTR, bf16": 4_830,  # the authors' own on an RTX 4090
    "BTR, bf16, compiled": 19_800,  # the fastest known
    "BBF at a replay ratio of 2": 18.5,  # 400,000 frames in 6 hours
}
"""What is aimed at: frames/s, µs an update, seconds."""
TOLERANCE = 1e-4
PONG = (
    "env.num_envs=32", "replay.capacity_steps=400_000", "replay.prefill_steps=20_000",
    "exploration.epsilon_decay_frames=800_000", "training.total_frames=12_000_000",
    "evaluation.light_period_frames=400_000", "evaluation.light_episodes=8",
    "evaluation.full_period_frames=12_000_000", "evaluation.full_episodes=8", "system.evaluation_workers=8",
)  # fmt: skip
"""`pong_quick.toml` with more environments and a longer budget; it ends at the first evaluation of 18."""
