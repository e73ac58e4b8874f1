"""The dashboard as a program: served files, access control, and every page in a browser, if installed."""

import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from forked import CommandServer
from serving import CHROMIUM, COMMAND, free_port, served

from atari_dqn.dashboard.guard import cookie_name

FILMED = "pong_2_double [é] seed2"


@pytest.mark.slow
def test_ctrl_c_ends_it_without_an_error(root: Path) -> None:
    command = [*COMMAND, str(root), "--port", str(free_port())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def status(address: str, method: str = "GET", **headers: str) -> int:
    request = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with served(root) as address:
        yield address


PAGES = ("", "curves", "live", "sweeps", "videos", "games", "ablations", "diff", "replay")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.slow
def test_a_page_answers_whatever_the_runs_are_like(address: str, page: str) -> None:
    assert status(address + page) == 200


def test_a_video_is_served(address: str) -> None:
    assert status(f"{address}media/{quote(FILMED)}/videos/step_000125000_run.mp4") == 200


def test_the_headers_of_a_video_are_served_alone(address: str) -> None:
    assert status(f"{address}media/{quote(FILMED)}/videos/step_000125000_run.mp4", "HEAD") == 200


def test_the_headers_of_a_page_are_served_alone(address: str) -> None:
    assert status(address, "HEAD") == 200


@pytest.mark.slow
def test_a_page_of_a_run_cannot_read_the_dashboard(address: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra dev is not there")
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"{address}web_pages/{quote(FILMED)}/web/index.html")
        page.wait_for_function("document.querySelector('p').textContent !== 'not yet'")
        said = page.inner_text("p")
        browser.close()
    assert said == "refused"


@pytest.mark.parametrize(
    "path",
    [
        "media/cut/spec.toml",
        f"web_pages/{quote(FILMED)}/web/notes.txt",
        f"web_pages/{quote(FILMED)}/spec.toml",
        f"web_pages/{quote(FILMED)}/notes.html",
        "web_pages/%2e%2e/outside/web/index.html",
        "media/%2e%2e/outside/videos/step_000125000_run.mp4",
        "media/..%2foutside%2fvideos%2fstep_000125000_run.mp4",
        "media//etc/passwd",
        "media/%2fetc%2fpasswd",
        "media/led%20out/videos/step_000125000_run.mp4",
        f"media/{quote(FILMED)}/videos/step_000500000_run.mp4",
        f"media/{quote(FILMED)}/videos",
        "docs",
        "openapi.json",
    ],
)
def test_nothing_else_is_served(address: str, path: str) -> None:
    assert status(address + path) == 404


def test_a_page_of_elsewhere_whose_name_leads_here_is_refused(address: str) -> None:
    assert status(address, Host="evil.example") == 403
    assert status(address, Origin="http://evil.example") == 403


@pytest.mark.parametrize("host", ["[", "[::1", "]:80[", "127.0.0.1:80["])
def test_a_malformed_host_is_a_bad_request(address: str, host: str) -> None:
    assert status(address, Host=host) == 400


def test_a_malformed_origin_is_a_bad_request(address: str) -> None:
    assert status(address, Origin="http://[") == 400


@pytest.mark.parametrize(("page", "title"), [("", "Runs"), ("games", "Games"), ("diff", "Config diff")])
@pytest.mark.slow
def test_a_page_has_its_own_title(address: str, page: str, title: str) -> None:
    with urllib.request.urlopen(address + page, timeout=30) as answer:
        assert f"<title>{title} · dqn dashboard</title>" in answer.read().decode()


@pytest.mark.slow
def test_wrong_address_is_not_printed_with_its_control_characters(root: Path) -> None:
    command = [*COMMAND, str(root), "--port", str(free_port())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        assert status(f"{address}%1b%5b31m") == 404
        process.terminate()
        assert process.communicate(timeout=30)[0] == ""


@pytest.mark.slow
def test_other_machines_need_the_token_that_is_printed(root: Path) -> None:
    with served(root, "--host", "0.0.0.0") as address:
        bare, _, token = address.partition("?token=")
        assert len(token) >= 32
        with_cookies = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with with_cookies.open(address, timeout=30) as answer:
            assert (answer.status, "token" in answer.url) == (200, False)
        assert status(bare, Cookie=f"{cookie_name(token)}={token}") == 200
        assert status(bare) == 403
        assert status(f"{bare}?token=wrong") == 403
        assert status(f"{bare}media/{quote(FILMED)}/videos/step_000125000_run.mp4") == 403


@pytest.fixture
def refused(command_server: CommandServer) -> Callable[..., str]:
    """Runs the command with wrong input and returns what it says."""

    def run(*words: str) -> str:
        done = command_server.run("dashboard", *words)
        assert done.code == 2
        return done.err

    return run


def test_a_root_that_is_not_there_is_the_users_mistake(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no such folder" in refused(str(tmp_path / "nothing"))


def test_a_run_as_root_is_refused_with_the_folder_that_holds_it(
    refused: Callable[..., str], root: Path
) -> None:
    message = " ".join(refused(str(root / FILMED)).split())
    assert f"is a run; name the folder that holds it: {(root / FILMED).resolve().parent}" in message


def test_a_port_that_is_taken_is_the_users_mistake(refused: Callable[..., str], root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        message = refused(str(root), "--port", str(taken.getsockname()[1]))
    assert "address already in use; name another --port" in message.lower()


PLOTTED = "(document.querySelector('.js-plotly-plot')?.data ?? [])"
"""Empty while one plot is replaced by the next."""


@pytest.mark.slow
def test_the_first_page_is_a_table_of_all_runs(address: str, page) -> None:
    page.goto(address)
    row = page.locator(".overview tr", has_text=FILMED)
    entries = row.locator("td").all_inner_texts()
    assert entries[:1] + entries[2:7] == [
        FILMED,
        "pong",
        "double",
        "B",
        "1.5M of 50M",
        "12.0 (final, 30 episodes)",
    ]
    assert entries[1] in ("running", "silent")
    assert len(entries[7]) == 8


@pytest.mark.slow
def test_curves_show_the_planted_numbers(address: str, page) -> None:
    page.goto(f"{address}curves")
    page.wait_for_selector(".main-svg")
    traces = page.evaluate(f"{PLOTTED}.map(t => [t.name, Math.max(...t.y)])")
    assert ["pong_2_double [é] seed2", 11.0] in traces
    page.get_by_text("seeds as bands").click()
    page.wait_for_function(f"{PLOTTED}.some(t => (t.name || '').includes('n = 2'))")


@pytest.mark.slow
def test_markup_in_a_name_is_text(address: str, page) -> None:
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    assert page.get_by_text("<img src=x onerror=alert(1)>").count() == 2  # in the table, and with the reason
    assert page.locator("img[src=x]").count() == 0
    assert dialogs == []


@pytest.mark.slow
def test_the_slider_moves_through_checkpoints_and_the_video_plays(address: str, page) -> None:
    page.goto(f"{address}videos")
    page.wait_for_selector("video")
    assert "1,500,000 frames: evaluation 12.0" in page.locator(".checkpoint").inner_text()
    page.wait_for_function("document.querySelector('video')?.currentTime > 0.1")
    page.locator(".checkpoint-slider").click(position={"x": 10, "y": 10})
    page.wait_for_function("document.querySelector('.checkpoint')?.innerText.startsWith('500,000 frames')")
    page.wait_for_function("document.querySelector('video')?.currentSrc.includes('step_000125000')")


@pytest.mark.slow
def test_games_show_scores_and_name_the_run_that_is_left_out(address: str, page) -> None:
    page.goto(f"{address}games")
    page.wait_for_selector(".scores")
    assert "11.0 [10.0, 12.0]" in page.locator(".scores").inner_text()
    assert page.get_by_text("left out: no table").count() == 1


@pytest.mark.slow
def test_ablations_show_the_increment_with_its_interval(address: str, page) -> None:
    page.goto(f"{address}ablations")
    page.wait_for_selector(".ladder")
    assert "15.0 [8.9, 21.1]" in page.locator(".ladder").inner_text()


@pytest.mark.slow
def test_diff_shows_differing_keys_only_and_marks_them(address: str, page) -> None:
    page.goto(f"{address}diff")
    page.wait_for_selector(".diff")
    keys = page.locator(".diff .font-mono:not(.differs)").all_inner_texts()
    assert "learner.discount" not in keys
    assert page.locator(".diff .differs").count() >= 2


@pytest.mark.slow
def test_live_shows_the_frames_of_the_tables(address: str, page) -> None:
    page.goto(f"{address}live")
    page.wait_for_selector(".live-run")
    assert "1,500,000 of" in " ".join(page.locator(".progress-line").all_inner_texts())
