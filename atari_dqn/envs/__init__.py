"""Games in lanes: emulators with preprocessing, inline or in worker processes over shared memory."""
