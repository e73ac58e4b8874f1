import pytest

from atari_dqn.agent import linear


@pytest.fixture(params=[False, True], ids=["oneDNN", "MKL"])
def either_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fp32 products go through each library, whichever is the quicker here."""
    monkeypatch.setattr(linear, "has_quick_fp32_products", lambda: request.param)
