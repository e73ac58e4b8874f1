"""The same numbers sooner: CPU kernels, compiled work, CUDA graphs. Assembly, bench and doctor import it.

Nothing here is needed: with this folder deleted everything trains, resumes and passes its tests, only slower.
"""
