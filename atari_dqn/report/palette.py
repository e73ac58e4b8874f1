"""Colours that people with any colour vision tell apart. Okabe & Ito (2008), without yellow and black."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
