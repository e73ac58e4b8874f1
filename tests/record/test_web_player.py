"""The page of `dqn export --web` in a browser: what it shows of planted games, and what it loads."""

import runpy
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import CPU, run

from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import RecordedGame, Recording, VideoOptions
from atari_dqn.record.web.folder import write_web_folder

SCRIPT = Path(__file__).parents[2] / "scripts" / "video_in_browser.py"
SHORT = (
    "training.total_frames=260", "replay.prefill_steps=60",
    "evaluation.full_period_frames=9999", "evaluation.light_period_frames=9999",
    "toggles.distribution=c51", "distribution.num_atoms=11", "distribution.v_min=-2", "distribution.v_max=3",
)  # fmt: skip
PIXELS = """() => {
    const canvas = document.querySelector('#screen');
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return [...data].filter((_, place) => place % 4 === 0);
}"""
RIGHT_OF_MIDDLE = "bar => parseFloat(bar.style.left) >= 50"
MARKED = (
    "image => [...image.getContext('2d').getImageData(0, 0, image.width, image.height).data].some(Boolean)"
)


def planted(game: RecordedGame) -> RecordedGame:
    """At step t the q-value of action a is −t − ((a − t) mod A) / 4, so that action t mod A is the best."""
    steps, actions = game.trace.values.shape
    values = np.array([[-t - ((a - t) % actions) / 4 for a in range(actions)] for t in range(steps)])
    saliency = np.zeros((steps, 17, 17), np.uint8)
    saliency[1, 8, 8] = 255
    explored = np.arange(steps) == 1
    trace = replace(game.trace, values=values.astype(np.float32), explored=explored)
    return replace(game, trace=trace, saliency=saliency)


pytestmark = pytest.mark.slow  # they start a browser


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("outputs") / "run"
    run(path, *SHORT)
    found = record_checkpoint(
        load_frozen(path, CPU), episodes=2, options=VideoOptions(), on_progress=lambda *_: None
    )
    return replace(found, games=tuple(planted(game) for game in found.games))


@pytest.fixture(scope="module")
def folder(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web pages é") / "web"
    write_web_folder(folder, recording, on_progress=lambda *_: None)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra dev is not there")
    chromium = runpy.run_path(str(SCRIPT))["CHROMIUM"]
    if chromium is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser: Any, folder: Path) -> Any:
    """The page, with the addresses that it requests and its errors."""
    opened = browser.new_page(viewport={"width": 360, "height": 740})
    opened.requested, opened.errors = [], []
    opened.on("request", lambda request: opened.requested.append(request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.goto((folder / "index.html").as_uri())
    return opened


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """The page at the first position of the first game."""
    opened.requested.clear()
    opened.reload()
    wait_for(opened, 0)
    yield opened
    assert opened.errors == []


def wait_for(page: Any, position: int) -> None:
    page.wait_for_selector(f"#screen[data-position='{position}']")


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def shown(game: RecordedGame) -> str:
    return f"{game.result.episode_return:g}".replace("-", "−")


def test_page_shows_the_planted_q_values(page: Any) -> None:
    assert texts(page, "#actions .value") == ["0.000", "−0.250", "−0.500"]
    assert texts(page, "#actions .advantage") == ["+0.250", "0.000", "−0.250"]
    assert page.locator("tr.best td").first.inner_text() == "noop"
    assert page.locator("#actions .bar i").first.evaluate(RIGHT_OF_MIDDLE)


def test_scrubbing_changes_what_is_shown(page: Any, recording: Recording) -> None:
    page.locator("#position").fill("1")
    wait_for(page, 1)
    assert texts(page, "#actions .value") == ["−1.500", "−1.000", "−1.250"]
    assert texts(page, "#step") == [f"1 of {len(recording.games[0].trace.actions)}"]
    assert page.locator("tr.best td").first.inner_text() == recording.action_names[1]
    selected = recording.action_names[recording.games[0].trace.actions[1]]
    assert page.locator("tr.selected.random td").first.inner_text() == selected


def test_keys_and_buttons_step(page: Any, recording: Recording) -> None:
    steps = len(recording.games[0].trace.actions)
    for key, position in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", steps),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        wait_for(page, position)
        assert texts(page, "#step") == [f"{position} of {steps}"]
    for button, position in (("forward", 1), ("back", 0), ("last", steps), ("first", 0)):
        page.locator(f"#{button}").click()
        wait_for(page, position)
        assert texts(page, "#step") == [f"{position} of {steps}"]
    page.locator("#whole").click(position={"x": 1, "y": 20})
    wait_for(page, 0)


def test_playing_ends_at_the_end_of_the_game(page: Any, recording: Recording) -> None:
    game = recording.games[0]
    page.locator("#speed").select_option("8")
    page.keyboard.press(" ")
    wait_for(page, len(game.trace.actions))
    assert texts(page, "#score") == [shown(game)]
    assert texts(page, "#decision") == ["the game is over"]
    assert page.locator("#play.playing").count() == 0


def test_a_screen_is_that_of_the_emulator(page: Any, recording: Recording) -> None:
    for step in islice(playback(recording, recording.games[0]), 6):
        wait_for(page, step.step + 1)
        brighter = np.maximum(step.screens[-1], step.screens[-2:][0])
        assert page.evaluate(PIXELS) == brighter[..., 0].ravel().tolist()
        page.keyboard.press("ArrowRight")


def test_saliency_is_drawn_where_it_is_planted_and_can_be_hidden(page: Any) -> None:
    assert not page.locator("#saliency").evaluate(MARKED)
    page.keyboard.press("ArrowRight")
    assert page.locator("#saliency").evaluate(MARKED)
    page.keyboard.press("s")
    assert page.locator("#saliency").is_hidden()


def test_another_game_is_selected(page: Any, recording: Recording) -> None:
    page.locator("#game").select_option("2")
    page.wait_for_function("state.game.data === GAMES[2]")
    page.keyboard.press("End")
    wait_for(page, len(recording.games[1].trace.actions))
    assert texts(page, "#score") == [shown(recording.games[1])]


def test_no_request_leaves_the_folder(page: Any, folder: Path) -> None:
    page.locator("#game").select_option("2")
    page.wait_for_function("state.game.data === GAMES[2]")
    names = sorted(address.removeprefix(f"{folder.as_uri()}/") for address in page.requested)
    assert names == sorted(path.name for path in folder.iterdir())


def test_page_fits_the_width_of_a_phone(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_distribution_is_shown_only_where_there_is_one(
    page: Any, browser: Any, recording: Recording, tmp_path: Path
) -> None:
    assert page.locator("#returns").is_visible()
    game = recording.games[0]
    plain = replace(game, saliency=None, trace=replace(game.trace, best_returns=None))
    write_web_folder(tmp_path / "web", replace(recording, games=(plain,)), on_progress=lambda *_: None)
    other = browser.new_page()
    other.goto((tmp_path / "web" / "index.html").as_uri())
    wait_for(other, 0)
    hidden = [other.locator(name).is_hidden() for name in ("#returns", "#saliency-switch", "#game-select")]
    other.close()
    assert hidden == [True, True, True]
