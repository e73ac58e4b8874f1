"""The library's public functions and classes, which `import atari_dqn` offers by name.

A module here is imported when one of its names is used first, so that importing the package is quick.
"""
