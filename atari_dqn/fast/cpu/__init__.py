"""Kernels for CPUs in C++, which pip compiles where it can; torch's own take over where they are missing."""
