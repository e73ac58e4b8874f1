import subprocess
import sys
from pathlib import Path

SPEC = Path(__file__).parents[2] / "runs" / "pong_trackA.toml"
MODULES = "loader render diff digest docs games"


def test_spec_and_protocol_import_neither_torch_nor_the_emulator():
    code = (
        "import sys, atari_dqn.spec.protocol\n"
        + "".join(f"import atari_dqn.spec.{module}\n" for module in MODULES.split())
        + "from atari_dqn.spec.loader import load_spec\n"
        + f"load_spec({str(SPEC)!r})\n"
        + "print(sorted({'torch', 'ale_py', 'cv2', 'rich', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
