"""Kernels for CPUs in C++, compiled by pip if there is a compiler; without them PyTorch's are used."""
