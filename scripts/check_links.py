"""Follow every internal link of the built site: the file must be there, and the place in it. Pages load nothing from
elsewhere: no script, style sheet, font, picture or frame of another host.

    python scripts/check_links.py docs/_build/html

Links to other hosts are counted, not followed: the check needs no network.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the places that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.images_without_words: list[str] = []
        self.loaded: list[str] = []
        """What a browser fetches by itself."""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        fetched = "href" if tag == "link" and values.get("rel") not in ("canonical", "author", "license") else "src"
        if tag != "a" and values.get(fetched):
            self.loaded.append(values[fetched])
        if tag == "img" and "alt" not in values:  # an empty one says that a picture only decorates
            self.images_without_words.append(values.get("src", "?"))


def main(folder: Path) -> int:
    pages = sorted(page for page in folder.rglob("*.html") if "_static" not in page.parts)  # the theme's templates
    read = cache(Page)
    broken, external = [], 0
    for page in pages:
        for link in read(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                external += 1
                continue
            path = page.parent / unquote(parts.path) if parts.path else page
            place = unquote(parts.fragment)
            if not path.exists():
                broken.append(f"{page.relative_to(folder)}: {link}: no such file")
            elif place and path.suffix == ".html" and place not in read(path).places:
                broken.append(f"{page.relative_to(folder)}: {link}: no such place")
        elsewhere = [link for link in read(page).loaded if urlsplit(link).netloc]
        broken += [f"{page.relative_to(folder)}: {link}: is loaded from another host" for link in elsewhere]
        broken += [f"{page.relative_to(folder)}: {src}: no alt text" for src in read(page).images_without_words]
    print("\n".join(broken) or f"{len(pages)} pages, no broken link; {external} links to other hosts were not followed")
    return bool(broken) or not pages


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
