"""Record evaluation games as decisions, and render them as videos with an explanatory panel."""
