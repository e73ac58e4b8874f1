"""Optional sinks: TensorBoard, Weights & Biases, MLflow, Parquet and a shell command. None blocks training."""
