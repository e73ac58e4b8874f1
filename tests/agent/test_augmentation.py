import torch
from parts import frames, make_batch, stream

from atari_dqn.agent.augmentation import RandomShifts, shifted


def test_shifted_frames_equal_a_crop_of_frames_padded_with_their_edges() -> None:
    stacks, down, right = (
        frames(6)[..., :30],
        torch.tensor([0, 1, -2, 4, -4, 3]),
        torch.tensor([0, -1, 3, 4, 0, -4]),
    )
    padded = torch.nn.functional.pad(stacks.float(), (4, 4, 4, 4), mode="replicate")
    found = shifted(stacks, down, right, reach=4)
    for place in range(6):
        top, left = 4 - down[place], 4 - right[place]
        assert torch.equal(found[place].float(), padded[place, :, top : top + 36, left : left + 30])


def test_a_stacks_frames_are_shifted_and_brightened_alike_and_stacks_apart() -> None:
    one = frames(1)[:, :1].expand(5, 4, -1, -1)
    changed = RandomShifts(shift_pixels=4, intensity_scale=0.05)(make_batch(5, s_tm1=one, s_t=one), stream())
    assert torch.equal(changed.s_tm1[:, :1].expand_as(changed.s_tm1), changed.s_tm1)
    assert len({stack.sum().item() for stack in (*changed.s_tm1, *changed.s_t)}) == 10


def test_brightness_changes_by_a_tenth_at_most() -> None:
    white = torch.full((500, 1, 36, 36), 200, dtype=torch.uint8)
    batch = make_batch(500, s_tm1=white, s_t=white)
    seen = RandomShifts(shift_pixels=4, intensity_scale=0.05)(batch, stream()).s_tm1
    assert 180.0 <= seen.min() < 181 < 219 < seen.max() <= 220.0


def shifted_dots() -> set[tuple[int, ...]]:
    """Return the row and column to which each of 500 shifts has moved a pixel of row and column 18."""
    dot = torch.zeros(500, 1, 36, 36, dtype=torch.uint8)
    dot[:, :, 18, 18] = 255
    batch = make_batch(500, s_tm1=dot, s_t=dot)
    seen = RandomShifts(shift_pixels=4, intensity_scale=0.0)(batch, stream()).s_tm1
    return {tuple(place.tolist()) for place in seen[:, 0].nonzero()[:, 1:]}


def test_shifts_reach_as_far_as_they_may_and_no_farther() -> None:
    rows, columns = zip(*shifted_dots(), strict=True)
    assert set(rows) == set(columns) == set(range(14, 23))


def test_shift_down_is_independent_of_the_shift_to_the_right() -> None:
    assert len(shifted_dots()) > 70  # of 9 · 9
