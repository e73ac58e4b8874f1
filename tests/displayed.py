"""A program on a terminal of its own: what it displays, and keys typed to it."""

import os
import select


class Displayed:
    """The tests' side of a pseudo terminal, `ours`, and all that has been displayed on it, `text`."""

    ours: int
    text: bytes

    def read_until(self, text: bytes) -> None:
        """Read what is displayed until a text has come, after those of earlier calls."""
        after = len(self.text)
        while text not in self.text[after:]:
            assert select.select([self.ours], [], [], 60)[0], "nothing more is displayed"
            self.text += os.read(self.ours, 4096)

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)
