#!/usr/bin/env bash
# From the wheel to a shared archive and a figure, in an empty environment outside of the clone, as a stranger
# would go. Usage: scripts/strangers_path.sh WHEEL [OPTIONS OF PIP]...
# With the wheel of PyTorch for CPUs it takes minutes on two cores, most of them for installing it.
set -euo pipefail

wheel=$(realpath "$1")
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
begun=$SECONDS

python3 -m venv environment
. environment/bin/activate
unset PYTHONPATH
pip install --quiet "$@" "$wheel[plot]"
echo "== installed: $((SECONDS - begun)) s"

dqn doctor
dqn train catch_smoke --plain --run-dir first
dqn export first/checkpoints/best -o catch.dqn
mv first removed # the archive is all that a colleague gets
dqn import catch.dqn -o colleague
dqn eval colleague --episodes 5 --json >imported.json
dqn eval catch.dqn --episodes 5 --json >archive.json
dqn eval removed/checkpoints/best --episodes 5 --json >own.json
python - <<'PYTHON'
import json

scores = [json.load(open(f"{name}.json"))["scores"][0] for name in ("own", "archive", "imported")]
assert scores[0]["returns"] == scores[1]["returns"] == scores[2]["returns"], scores
print("the same returns, game by game:", scores[0]["returns"])
PYTHON
dqn compare colleague --plot figure.png
python - <<'PYTHON'
import atari_dqn as dqn

agent = dqn.load("catch.dqn")
print(agent.game, agent.env_frames, "frames;", len(agent.scores), "scores")
PYTHON
test -s figure.png
echo "== from the wheel to an archive and a figure: $((SECONDS - begun)) s"
