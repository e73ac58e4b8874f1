"""Games in environments: emulators with preprocessing, inline or in worker processes over shared memory."""
