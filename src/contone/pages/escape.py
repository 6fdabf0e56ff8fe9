"""Text that others wrote (names of files, columns and methods, errors), made safe for each kind of output.

A name may hold anything: ``"><img src=x onerror=...>``, ``$\\frac{1}{0$``, a pipe, a backslash. Whatever is written
into a page, a drawing, a document or a table goes through one of these.
"""

import hashlib
import html as _html
import json
import re
from typing import Any

LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
}

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters but for tabs and ends of lines, those that turn the order of a line around, halves of surrogate
pairs, code points that are none."""


def html(text: str) -> str:
    """Text between tags, or inside a quoted attribute, of HTML or SVG."""
    return _html.escape(printable(text), quote=True)


def json_for_html(value: Any) -> str:
    """JSON inside a script element: no tag ends it, no comment opens in it.

    Examples
    --------
    >>> print(json_for_html("</script><!--"))
    "\\u003c/script\\u003e\\u003c!--"
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(f"[<>&\u2028\u2029]|{CONTROLS.pattern}", lambda found: f"\\u{ord(found[0]):04x}", text)


def identifier(text: str) -> str:
    """A name for an id or a reference to one: letters, digits, - and _, different for different texts.

    Examples
    --------
    >>> identifier("ranks-all-kl"), identifier("a b"), identifier("a.b")
    ('ranks-all-kl', 'a-b-c8687a08', 'a-b-2e7336dc')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text)
    if plain == text:
        return text
    return f"{plain.strip('-')}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, also in a cell of a table.

    Examples
    --------
    >>> print(markdown("a|b *c* <d>"))
    a\\|b \\*c\\* \\<d\\>
    """
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(printable(text).split("\n")))


def latex(text: str) -> str:
    """Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(latex("LCdr_1 50 %"))
    LCdr\\_1 50 \\%
    """
    return "".join(LATEX.get(c, c) for c in " ".join(printable(text).split("\n")))


def printable(text: str) -> str:
    """The text without control characters and broken code points, which no document may hold; lines and tabs stay.

    Examples
    --------
    >>> printable("red\\x1b[31m")
    'red�[31m'
    """
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
