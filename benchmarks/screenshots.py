"""Pictures of the explorer's main views, for the README and docs: `python benchmarks/screenshots.py --run out`.

Needs Chromium with its driver and Selenium (`pip install -e '.[test]'`).
"""

from __future__ import annotations

import argparse
import shutil
import threading
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from pipelines.view.explorer import Explorer
from pipelines.view.server import Server

_SIZE = {"width": 1280, "height": 860, "deviceScaleFactor": 1, "mobile": False}
_KEY = "filter.rules.gopher.word_count.min"


def views(explorer: Explorer) -> dict[str, str]:
    """Return the state that each picture shows, by name."""
    limit = next(held for held in explorer.limits({})["limits"] if held["key"] == _KEY)
    return {"funnel": "funnel", "signals": f"signals?limit={limit['limit']}&threshold=120"}


def driver() -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for name in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(name)
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True)
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    explorer = Explorer(options.run)
    server = Server(explorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options.output.mkdir(parents=True, exist_ok=True)
    with driver() as browser:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", _SIZE)
        for name, state in views(explorer).items():
            browser.get("about:blank")
            browser.get(f"{server.url}#/{state}")
            ready = "return !!document.querySelector('main .card, .figures') && !document.querySelector('.loading, [aria-busy=true]')"
            WebDriverWait(browser, 60).until(lambda b, ready=ready: b.execute_script(ready))
            browser.implicitly_wait(1)
            browser.find_elements("css selector", ".sides")  # settles what follows a threshold
            path = options.output / f"{name}.png"
            browser.save_screenshot(str(path))
            print(f"{path}: {path.stat().st_size:,} bytes")
    server.shutdown()


if __name__ == "__main__":
    main()
