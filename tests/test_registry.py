import sys

import pytest

from atari_dqn.errors import UserError
from atari_dqn.registry import Registry

ENTRIES = [("linear", "atari_dqn.schedule:LinearSchedule"), ("every", "atari_dqn.clock:Every")]


def test_load_returns_the_object_of_an_entry():
    registry: Registry[type] = Registry("schedule", ENTRIES)
    assert registry.load("linear").__name__ == "LinearSchedule"


def test_entry_is_not_imported_before_it_is_loaded():
    registry: Registry[object] = Registry("game", [("antigravity", "no_such_module:thing")])
    assert list(registry) == ["antigravity"]
    assert "no_such_module" not in sys.modules


def test_name_registered_twice_raises_an_error_with_both_targets():
    with pytest.raises(ValueError, match=r"schedule 'linear' is registered twice: .*LinearSchedule and a:b"):
        Registry[type]("schedule", [*ENTRIES, ("linear", "a:b")])


def test_first_entry_is_kept_after_a_duplicate():
    registry: Registry[type] = Registry("schedule", ENTRIES)
    with pytest.raises(ValueError, match="twice"):
        registry.add("linear", "atari_dqn.clock:Every")
    assert registry.load("linear").__name__ == "LinearSchedule"


@pytest.mark.parametrize("target", ["atari_dqn.clock", "a:b:c", ""])
def test_a_target_without_module_and_attribute_raises(target: str):
    with pytest.raises(ValueError, match="expected 'module:attribute'"):
        Registry[type]("schedule", [("x", target)])


def test_error_of_an_unknown_name_lists_the_names_and_suggests_one():
    registry: Registry[type] = Registry("schedule", ENTRIES)
    with pytest.raises(UserError) as caught:
        registry.load("liner")
    assert (
        str(caught.value) == "unknown schedule 'liner'; expected one of every, linear; did you mean 'linear'?"
    )


def test_name_unlike_all_others_gets_no_suggestion():
    registry: Registry[type] = Registry("schedule", ENTRIES)
    with pytest.raises(UserError) as caught:
        registry.load("zzz")
    assert str(caught.value) == "unknown schedule 'zzz'; expected one of every, linear"
