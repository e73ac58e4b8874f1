"""Acceleration: CPU kernels, compilation and CUDA graphs. Only assembly and `dqn doctor` import it.

It is optional: without this folder everything trains, resumes and passes its tests, but more slowly.
"""
