"""Optional sinks: TensorBoard, Weights & Biases, Parquet and a shell command. None blocks training."""
