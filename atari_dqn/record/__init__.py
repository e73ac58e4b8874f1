"""Videos of evaluation games: kept as decisions, played again frame by frame, explained beside the screen."""
