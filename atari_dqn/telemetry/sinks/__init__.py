"""Where else events go: TensorBoard, Weights & Biases, Parquet, a user's command. None holds training up."""
