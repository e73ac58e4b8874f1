#!/usr/bin/env bash
# Checks and measures the GPU path within 8 minutes, and prints one JSON: also in $OUT/gpu.json.
#
# The machine needs Python 3.12, torch, numpy, rich, typer, OpenCV and pytest, no network, and not this package's
# other dependencies: those for training come along as wheels. On a machine that has a network:
#
#   python -m pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
#     --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
#     -r benchmarks/gpu_wheels.txt -d wheels
#
# and the folder `wheels`, 12 MB, is put beside this repository's files. Then there:  benchmarks/gpu.sh
# Try the script on a machine without a GPU, which takes half an hour, because a CPU is slow and has longer limits:
#   DEVICE=cpu SMOKE=1 OUT=/tmp/smoke benchmarks/gpu.sh
#
# OUT      folder of the results (gpu_results)      WHEELS   folder of the wheels (wheels)
# DEVICE   cuda or cpu (cuda)                       WORKERS  emulating processes (cores − 2)
# SECONDS_ALL  the whole script's limit (480, to try it out 4800)
# STAGES   which stages (all: tests updates frames compiled agents pong losses)
# SECONDS_TESTS, SECONDS_AGENTS, …  a stage's own limit
# SECONDS_ROW  how long each training speed is measured (5)
set -uo pipefail
cd "$(dirname "$0")/.."
began=$(date +%s)
out=${OUT:-gpu_results} device=${DEVICE:-cuda} smoke=${SMOKE:-0} wheels=${WHEELS:-wheels}
if [ "$smoke" = 1 ]; then times=10; else times=1; fi
limit=${SECONDS_ALL:-$((480 * times))}
cores=$(nproc)
workers=${WORKERS:-$((cores > 3 ? cores - 2 : cores))}
mkdir -p "$out"
out=$(realpath "$out")
rm -f "$out"/*.stage.json "$out/tests.log"

left() { echo $((began + limit - $(date +%s))); }

if [ -d "$wheels" ]; then
    site=$(mktemp -d)
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
    export PYTHONPATH="$PWD:$site${PYTHONPATH:+:$PYTHONPATH}"
else
    export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONUNBUFFERED=1

# stage NAME LIMIT_SECONDS COMMAND...: its own limit, what is left of the script's at most; never ends the script
stage() {
    local name=$1 own="SECONDS_${1^^}" began_stage=$SECONDS code
    local most=$((${!own:-$2} * times))
    shift 2
    local room=$(($(left) - 5))
    if [ "$room" -lt 5 ]; then
        echo "== $name: no time left" | tee -a "$out/stages.txt"
        return
fi
    timeout -k 5 "$((most < room ? most : room))" "$@" >"$out/$name.log" 2>&1
    code=$?
    echo "== $name: exit $code after $((SECONDS - began_stage)) s" | tee -a "$out/stages.txt"
    [ $code -eq 0 ] || tail -n 15 "$out/$name.log"
}

measured() {
    local name=$1 most=$2 seconds=$3
    [ "$smoke" = 1 ] && seconds=0.2
    (cd "$out" && stage "$name" "$most" python3 "$OLDPWD/benchmarks/gpu.py" "$name" --folder "$out" \
        --device "$device" --workers "$workers" --seconds "$seconds")
}

: >"$out/stages.txt"
wants() { case " ${STAGES:-tests updates frames compiled agents pong losses} " in *" $1 "*) ;; *) return 1 ;; esac; }

if wants tests; then
    # no conftest and no project configuration: those need packages that only a developer has
    at_once=() && python3 -c 'import xdist' 2>/dev/null && at_once=(-n 8)
    stage tests 180 env PYTHONPATH="$PYTHONPATH:$PWD/tests" python3 -m pytest -v --noconftest \
        -c /dev/null --rootdir . -p no:cacheprovider -o markers="gpu: needs an accelerator" -m gpu --durations=8 \
        "${at_once[@]}" tests/gpu
fi
wants updates && measured updates 70 1
wants frames && measured frames 110 "${SECONDS_ROW:-5}"
wants compiled && measured compiled 130 1
wants agents && measured agents 180 "${SECONDS_ROW:-5}"
if wants pong; then
    pong_seconds=${SECONDS_PONG:-$(($(left) - $(wants losses && echo 50 || echo 20)))}
    [ "$smoke" = 1 ] && pong_seconds=20
    [ "$pong_seconds" -ge 5 ] || pong_seconds=5
    (cd "$out" && rm -rf gpu_pong_run && SECONDS_PONG="" stage pong "$((pong_seconds + 12))" python3 "$OLDPWD/benchmarks/gpu.py" pong \
        --folder "$out" --device "$device" --workers "$workers" --seconds "$pong_seconds")
fi
wants losses && measured losses 45 1
python3 benchmarks/gpu.py report --folder "$out"
cat "$out/stages.txt" >&2
