"""Shows a job summary as GitHub would: python -m tests.render_markdown DIRECTORY page.html [page.png]

Audits the directory, renders the summary with cmark-gfm (GitHub's own parser) and puts a stylesheet
of GitHub's look around it; with a third argument Chromium takes a picture.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.reporters import summary

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120

# Close enough to GitHub's to judge what the eye meets first; light theme.
STYLE = """
body { overflow-wrap: break-word; background: #fff; color: #1f2328; box-sizing: border-box; margin: 0 auto; padding: 24px 32px;
  max-width: 1012px;
  font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif, "Noto Color Emoji"; }
h2 { font-size: 1.5em; border-bottom: 1px solid #d1d9e0b3; padding-bottom: .3em; margin: 0 0 16px; }
h3 { font-size: 1.25em; margin: 24px 0 16px; }
p, ul, table, pre, details { margin: 0 0 16px; }
ul { padding-left: 2em; }
table { border-collapse: collapse; display: block; width: max-content; max-width: 100%; overflow: auto; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
tr:nth-child(2n) td { background: #f6f8fa; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
code { font-size: 85%; padding: .2em .4em; background: #818b981f; border-radius: 6px;
  white-space: break-spaces; }
pre { background: #f6f8fa; padding: 16px; border-radius: 6px; overflow: auto; font-size: 85%; line-height: 1.45; }
pre code { background: none; padding: 0; font-size: 100%; white-space: pre; }
.removed { color: #82071e; background: #ffebe9; }
.changed { color: #953800; background: #ffd8b5; }
"""


def to_html(markdown: str) -> str:
    """What cmark-gfm makes of it with GitHub's extensions, raw HTML passed on to the sanitizer."""
    html: str = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    return html


def page(html: str) -> str:
    """A whole document; lines of a `diff` block are coloured as GitHub does."""
    html = re.sub(
        r'(<pre lang="diff"><code>)(.*?)(</code></pre>)',
        lambda match: match[1] + "\n".join(map(_coloured, match[2].split("\n"))) + match[3],
        html,
        flags=re.DOTALL,
    )
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>mkcov</title><style>{STYLE}</style>{html}'


def _coloured(line: str) -> str:
    name = {"-": "removed", "!": "changed"}.get(line[:1])
    return f'<span class="{name}">{line}</span>' if name else line


def browser() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def screenshot(html: Path, png: Path, *, width: int = 1100, height: int = 1400) -> None:
    """Takes a picture of a page with a fresh profile and no network."""
    chromium = browser()
    if chromium is None:
        raise FileNotFoundError(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--screenshot={png}",
            html.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)


def main(directory: str, html: str, png: str | None = None) -> None:
    path = Path(directory).resolve()
    root = Path.cwd() if path.is_relative_to(Path.cwd()) else path.parent
    report = audit(Config(paths=(str(path),), root=root))
    Path(html).write_text(page(to_html(summary.render(report))), encoding="utf-8")
    if png:
        screenshot(Path(html), Path(png))


if __name__ == "__main__":
    main(*sys.argv[1:])
