"""Optional sinks: TensorBoard, W&B, MLflow, Parquet and a shell command. None blocks training."""
