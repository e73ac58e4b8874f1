"""Archives: an agent with its spec, provenance, scores and tables in one file without pickle.

No module here imports torch; `evaluation.weights` reads and writes the weights.
"""
