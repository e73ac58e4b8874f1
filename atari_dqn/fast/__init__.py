"""The same numbers sooner: kernels, captured graphs, compilation. Imported by `assembly` alone."""
