"""Write equations as MathML, which browsers draw without a script or a font from elsewhere."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def write_inline(writer: Any, node: nodes.Element) -> None:
    """Write an equation within a line."""
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.Element) -> None:
    """Write an equation on a line of its own."""
    equation = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math">{equation}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer, which Sphinx uses because the name is the configured one."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
