"""The grey level of each palette index of a screen."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

PAL_ROWS = 250
"""Height of the screen of a PAL console, which has another palette. That of an NTSC console is less."""

_NTSC = """
      0  74  74 111 111 142 142 170 170 192 192 214 214 236 236   0
     64  15  95  29 122  42 148  53 172  64 193  74 214  84 233   0
     63  17  87  33 110  48 131  61 150  74 167  85 184  96 199   0
     59  21  85  40 107  58 129  74 148  89 167 103 183 116 199   0
     44  26  68  50  90  72 110  92 128 111 146 128 161 144 176 100
     51 122  74 143  95 162 115 179 132 195 149 210 164 224 178 132
     39 154  63 173  85 192 107 208 125 224 143 238 159 252 174 144
     22 163  49 181  73 198  96 213 116 227 136 240 153 252 169 148
     17 167  41 184  64 200  85 214 104 228 121 240 137 252 153 136
     32 157  60 176  85 194 109 210 130 225 150 239 168 252 186 100
     40 128  69 152  95 176 120 197 141 217 162 235 182 252 200  48
     43  78  74 105 101 130 127 153 151 174 173 194 193 212 212   0
     40  26  71  50  98  72 124  92 147 111 169 128 189 144 207   0
     41  24  74  45 104  66 132  84 157 101 181 117 203 132 223   0
     47  22  79  43 107  62 133  79 157  95 179 110 200 124 220   0
     47  20  79  38 107  56 133  71 157  86 179  99 200 112 220 136
"""
"""Grey levels of ale-py for an NTSC console: one hue per row, brighter to the right.

Odd indices are used by a console that has lost its colour. Tests compare all 256 levels, and the screens of
games, with those of ale-py's emulator.
"""

PALETTE_ALE_VERSION = "0.12.1"
"""The version of ale-py that has these grey levels."""


def _table(levels: list[int]) -> UInt8[np.ndarray, "256"]:
    table = np.array(levels, np.uint8)
    table.flags.writeable = False
    return table


NTSC_PALETTE = _table([int(grey) for grey in _NTSC.split()])
IDENTITY_PALETTE = _table(list(range(256)))
"""The palette of a screen of grey levels."""
