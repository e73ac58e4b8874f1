from jaxtyping import install_import_hook

CHECKED = ("agents", "learning", "minibatch", "replay")
"""Modules whose shape annotations every test checks. Nothing of them is imported before this line has run."""

install_import_hook([f"atari_dqn.{name}" for name in CHECKED], "shapes.checked")
