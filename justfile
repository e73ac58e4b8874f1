# Everyday recipes. The checks are those that .ci/run calls: .ci/step says what each one is.

# list the recipes
default:
    @just --list

# install the project and its tools into the active environment, at the pinned versions
setup:
    pip install -c constraints.txt -e '.[dev]'

# style and likely mistakes
lint:
    .ci/step lint

# mypy, strict for the package, nearly so for benchmarks and other scripts
types:
    .ci/step types

# the documentation site, in build/site: a warning is an error
docs:
    .ci/step docs

# the default tests, a process more than there are cores: three minutes on two
test:
    .ci/step test

# the tests that take longer and guard promises: a quarter of an hour on two cores
slow:
    .ci/step slow

# every fault, kill and learning of which the slow tests have some, and the kernels in every width: before a release
thorough:
    .ci/step thorough

# only the tests that compare with stored traces
golden:
    .ci/step golden

# emulation and training, compared with other systems; each prints JSON and writes it to FOLDER, which must be new
bench FOLDER:
    mkdir {{FOLDER}}
    python benchmarks/emulation.py --out {{FOLDER}}/emulation.json
    python benchmarks/replay_memory.py --out {{FOLDER}}/replay_memory.json
    python benchmarks/checkpoint.py --out {{FOLDER}}/checkpoint.json
    python benchmarks/versus.py --out {{FOLDER}}/versus.json
    python benchmarks/num_envs.py --out {{FOLDER}}/num_envs.json

# train a spec: just train pong_quick
train SPEC *OPTIONS:
    dqn train {{SPEC}} {{OPTIONS}}
