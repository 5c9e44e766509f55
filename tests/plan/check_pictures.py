#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stored pictures of plans, rendered by a browser: nothing is blank, cut off, or on top of
something else, and limits and windows can be seen. TAP.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position

DATA = drover.ROOT / "tests" / "data" / "plan"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LIMIT = "#b3541e"
WINDOW = "#eaf5e9"
# Which pictures show a limit across all, and which a window.
LIMITED = {"skyhook", "skyhook-fail", "release", "release-approved", "drains-apart",
           "drains-together", "hosts"}
WINDOWED = {"release-approved"}

# Draws each picture into a canvas and measures it: where its texts are, which colours it has.
PAGE = """<!doctype html><meta charset="utf-8"><body>%s<pre id="out"></pre><script>
const all = {};
function boxes(svg) {
  return [...svg.querySelectorAll("text")].map((t) => {
    const b = t.getBBox();
    return [t.textContent, b.x, b.y, b.width, b.height];
  });
}
function colours(svg, draw) {
  const size = svg.viewBox.baseVal, canvas = document.createElement("canvas");
  canvas.width = size.width;
  canvas.height = size.height;
  const pen = canvas.getContext("2d"), image = new Image();
  image.onload = () => {
    pen.drawImage(image, 0, 0);
    const bytes = pen.getImageData(0, 0, canvas.width, canvas.height).data, count = {};
    for (let i = 0; i < bytes.length; i += 4) {
      const name = "#" + [0, 1, 2].map((k) => bytes[i + k].toString(16).padStart(2, "0")).join("");
      count[name] = (count[name] || 0) + 1;
    }
    draw(count, canvas.width, canvas.height);
  };
  const text = new XMLSerializer().serializeToString(svg);
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
}
let left = document.querySelectorAll("svg").length;
for (const svg of document.querySelectorAll("svg"))
  colours(svg, (count, width, height) => {
    all[svg.parentElement.id] = {texts: boxes(svg), count, width, height};
    if (--left === 0)
      document.getElementById("out").textContent = JSON.stringify(all);
  });
</script>"""


def render(browser, pictures):
    """What a browser sees of them, by name; a text if it cannot be asked."""
    parts = "".join(f'<div id="{path.stem}">{path.read_text(encoding="utf-8")}</div>'
                    for path in pictures)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        page.write_text(PAGE % parts, encoding="utf-8")
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000", "--dump-dom",
             page.as_uri()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240,
            check=False)
    text = done.stdout.decode("utf-8", "replace")
    start, end = text.find('<pre id="out">') + len('<pre id="out">'), text.rfind("</pre>")
    found = text[start:end].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    try:
        return json.loads(found)
    except ValueError:
        return f"exit status {done.returncode}: {text[-500:]}{done.stderr.decode()[-1500:]}"


def outside(seen):
    """Texts that reach over the edge."""
    return [text for text, x, y, width, height in seen["texts"]
            if x < 0 or y < 0 or x + width > seen["width"] or y + height > seen["height"]]


def overlaps(seen):
    """Pairs of texts one of which covers part of the other."""
    texts, found = [one for one in seen["texts"] if one[3] > 0], []
    for i, (text, x, y, width, height) in enumerate(texts):
        for other, x2, y2, width2, height2 in texts[i + 1:]:
            across = min(x + width, x2 + width2) - max(x, x2)
            down = min(y + height, y2 + height2) - max(y, y2)
            # Lines of text stand closer together than their boxes are high.
            if across > 1 and down > min(height, height2) * 0.45:
                found.append((text, other))
    return found


def picture(tap, name, seen):
    ink = seen["width"] * seen["height"] - seen["count"].get("#ffffff", 0)
    tap.test(f"{name}: it is not blank",
             None if ink > 20000 and len(seen["count"]) > 10 else f"{ink} points")
    tap.test(f"{name}: no text is cut off", outside(seen) and str(outside(seen)))
    tap.test(f"{name}: no text stands on another", overlaps(seen) and str(overlaps(seen)))
    dashes = seen["count"].get(LIMIT, 0)
    tap.test(f"{name}: the limit is {'' if name in LIMITED else 'not '}drawn",
             None if (dashes > 200) == (name in LIMITED) else f"{dashes} points of its colour")
    green = seen["count"].get(WINDOW, 0)
    tap.test(f"{name}: windows are {'' if name in WINDOWED else 'not '}shaded",
             None if (green > 5000) == (name in WINDOWED) else f"{green} points of their colour")


def main():
    tap = drover.Tap()
    pictures = sorted(DATA.glob("*.svg"))
    browser = next((shutil.which(name) for name in BROWSERS if shutil.which(name)), None)
    if not browser:
        # As with the dashboard: not every system has it as a package.
        tap.skip("pictures of plans in a browser", "there is no Chromium")
        return tap.done()
    seen = render(browser, pictures)
    tap.test("a browser renders all of them",
             None if isinstance(seen, dict) and len(seen) == len(pictures) else str(seen))
    for name in sorted(seen if isinstance(seen, dict) else {}):
        picture(tap, name, seen[name])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
