# An image with `dqn`, for NVIDIA GPUs and CPUs or, with --build-arg TORCH_INDEX=URL, for CPUs alone: docs/installation.md.
# An image that is passed on holds ale-py, which is GPL-2.0: docs/licences.md.

FROM python:3.11-slim-bookworm AS builder
RUN apt-get update && apt-get install --yes --no-install-recommends g++ binutils && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir build wheel
WORKDIR /source
COPY setup.py pyproject.toml MANIFEST.in README.md CHANGELOG.md LICENSE constraints.txt ./
COPY scripts/build_wheel.py scripts/
COPY runs runs
COPY atari_dqn atari_dqn
RUN python scripts/build_wheel.py --out /dist

FROM python:3.11-slim-bookworm
# PyTorch's index of wheels without CUDA, which are gigabytes smaller; empty for those of pip's own index, with CUDA.
ARG TORCH_INDEX=
# for example plot,record,dashboard; record brings x264, which is GPL-2.0-or-later
ARG EXTRAS=plot
COPY constraints.txt LICENSE docs/licences.md /usr/share/atari_dqn/
COPY --from=builder /dist/*.whl /dist/
RUN pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        -c /usr/share/atari_dqn/constraints.txt "$(ls /dist/*.whl)[$EXTRAS]" \
    && rm -r /dist
RUN useradd --create-home --uid 1000 dqn && mkdir /runs && chown dqn /runs
USER dqn
WORKDIR /runs
ENTRYPOINT ["dqn"]
