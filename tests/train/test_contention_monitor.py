"""A run reports when other programs use its cores, and when they stop."""

from atari_dqn.clock import Clock
from atari_dqn.machine.contention import Contention, CoreTimes
from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.train.contention_monitor import ContentionMonitor, contention_remedy

BUSY, FREE = 0.4, 0.0


class Machine:
    """Two cores of which another program uses one; in some periods of ten seconds, the run's threads wait."""

    def __init__(self, waiting_shares: list[float]) -> None:
        self._shares = iter(waiting_shares)
        self.seconds, self._waited, self._ran = 0.0, 0.0, 0.0
        self.reported: list[Notice] = []

    def now(self) -> float:
        return self.seconds

    def read(self) -> CoreTimes:
        return CoreTimes(
            at=self.seconds,
            usable_cores=2,
            allowed_cores=2,
            used=2 * self.seconds,
            own=self.seconds,
            threads={1: (self._ran, self._waited)},
        )

    def handle(self, event: Event) -> None:
        assert isinstance(event, Notice)
        self.reported.append(event)

    def close(self) -> None: ...

    def run(self) -> list[tuple[float, str]]:
        """Return second and kind of each notice."""
        clock = Clock(frame_skip=4, prefill_steps=0)
        watch = ContentionMonitor(
            self, clock, threads=2, remedy=lambda found: "end them", read=self.read, now=self.now
        )
        given = []
        for share in self._shares:
            self.seconds += 10
            self._ran += 10 * (1 - share)
            self._waited += 10 * share
            before = len(self.reported)
            watch.poll()
            given += [(self.seconds, notice.kind) for notice in self.reported[before:]]
        return given


def test_a_machine_that_stays_busy_is_said_once_after_half_a_minute() -> None:
    assert Machine([FREE, BUSY, BUSY, BUSY, BUSY, BUSY]).run() == [(40, "busy machine")]


def test_work_of_twenty_seconds_is_not_worth_a_notice() -> None:
    assert Machine([BUSY, BUSY, FREE, BUSY, BUSY, FREE]).run() == []


def test_a_machine_that_is_free_again_is_said_too() -> None:
    shares = [BUSY] * 3 + [FREE] * 2 + [BUSY] + [FREE] * 3
    assert Machine(shares).run() == [(30, "busy machine"), (90, "free machine")]


def test_nothing_is_read_within_ten_seconds() -> None:
    machine = Machine([])
    reads = []
    watch = ContentionMonitor(
        machine,
        Clock(frame_skip=4, prefill_steps=0),
        threads=2,
        remedy=lambda found: "",
        read=lambda: reads.append(1) or machine.read(),
        now=machine.now,
    )
    machine.seconds = 9.9
    watch.poll()
    assert len(reads) == 1


def test_notice_says_what_others_use_how_much_is_waited_and_what_to_do() -> None:
    machine = Machine([BUSY] * 3)
    machine.run()
    assert machine.reported[0].message == (
        "other programs use 1.0 of 2 cores, "
        "and this run's threads wait 40% of their time for a core; end them"
    )


TWO_CORES = Contention(usable_cores=2, others_cores=1.0, waiting_share=0.4)


def test_way_out_is_fewer_threads_where_the_run_has_more_than_cores_are_left() -> None:
    said = contention_remedy(TWO_CORES, threads=2, device="cpu", resume_command="dqn resume outputs/a")
    assert said == "end them, or interrupt this run and continue with `dqn resume outputs/a --threads 1`"


def test_run_with_one_thread_or_on_a_gpu_is_not_advised_to_have_fewer() -> None:
    for threads, device in ((1, "cpu"), (2, "cuda")):
        said = contention_remedy(TWO_CORES, threads=threads, device=device, resume_command="dqn resume a")
        assert said == "end them, or wait for them"
