"""What people do with the explorer, in a real browser, on a desk and where it differs a phone."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pipelines.reading.explorer import Explorer
from pipelines.view.server import Server
from tests.conftest import ROOT
from tests.view.conftest import ACT, HOSTILE, KEY, THRESHOLD, Canary, serving

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

#: How long to wait for a page, and how often to look; by default twice a second.
_PATIENCE = {"timeout": 60, "poll_frequency": 0.03}

_BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
_DRIVER = shutil.which("chromedriver")
_AXE = ROOT / "pipelines/view/web/node_modules/axe-core/axe.min.js"
_SIZES = {"desk": (1280, 900), "phone": (390, 844), "paper": (700, 900)}
_VIEWS = (
    *("funnel", "signals", "documents", "duplicates", "hosts", "lines", "mix", "errors"),
    *("compare", "document?row=0"),
)

_BEFORE = "return getComputedStyle(arguments[0], '::before').content"

_NUMBERS = itertools.count()

pytestmark = pytest.mark.skipif(
    _BROWSER is None or _DRIVER is None, reason="no Chromium with its driver here"
)


class Reader:
    """A person at a browser."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver, self.url = driver, url
        self.clicks = 0

    def open(self, state: str = "") -> None:
        """Load the page anew, in the same process: another takes longer than most pages."""
        address = f"{self.url}?{next(_NUMBERS)}"
        self.driver.get(f"{address}#/{state}" if state else address)
        self.find("main h1")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being loaded."""
        busy = "return !document.querySelector('.loading, [aria-busy=true]')"
        WebDriverWait(self.driver, **_PATIENCE).until(lambda d: d.execute_script(busy))

    def find(self, css: str) -> Any:
        found = WebDriverWait(self.driver, **_PATIENCE).until(
            lambda d: d.find_elements(By.CSS_SELECTOR, css)
        )
        return found[0]

    def all(self, css: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def click(self, element: Any) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.clicks += 1
        self.settle()

    def text(self, css: str) -> str:
        return str(self.wait(lambda: [self.find(css).text])[0])

    def wait(self, condition: Any) -> Any:
        """Wait until a condition holds; while the page is drawn anew, it can't be read."""
        stale = [StaleElementReferenceException]
        drawn = WebDriverWait(self.driver, **_PATIENCE, ignored_exceptions=stale)
        return drawn.until(lambda _: condition())

    def press(self, *keys: str) -> None:
        actions = webdriver.ActionChains(self.driver)
        actions.send_keys(*keys).perform()

    def script(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def fits(self, size: str = "") -> Any:
        """Say whether nothing is wider than the window, after it became one of another size."""
        if size:
            resized(self.driver, size)
        return self.script("return document.documentElement.scrollWidth <= innerWidth")

    def acted(self) -> Any:
        """What a script of a document left behind, after time for images to load or fail."""
        return self.driver.execute_async_script(
            "const done = arguments[0]; setTimeout(() => done(window.pwned), 50)"
        )


@contextmanager
def started() -> Iterator[Any]:
    """A browser."""
    options = webdriver.ChromeOptions()
    options.binary_location = _BROWSER
    for name in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(name)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    service = webdriver.ChromeService(_DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all: to start it costs more than most tests."""
    with started() as driver:
        yield driver


def resized(browser: Any, size: str = "desk", dark: bool = False, media: str = "") -> Any:
    """The browser as a window of this kind."""
    width, height = _SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
    mobile = {"mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics | mobile)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    return browser


@pytest.fixture
def driver(request: pytest.FixtureRequest, browser: Any) -> Any:
    return resized(browser, getattr(request, "param", "desk"))


#: What depends on the window: how things lie in it, and what is dragged or reached by clicks.
both_sizes = pytest.mark.parametrize("driver", ["desk", "phone"], indirect=True)


@pytest.fixture
def reader(driver: Any, server: Server) -> Reader:
    return Reader(driver, server.url)


@both_sizes
def test_why_a_page_is_gone_in_four_clicks(reader: Reader) -> None:
    reader.open()
    link = next(a for a in reader.all(".reasons a") if a.text.startswith("gopher."))
    rule = link.text.split()[0]
    reader.click(link)
    reader.click(reader.find("tbody .doclink"))
    verdict = reader.text(".verdict")
    assert rule in verdict
    assert "threshold" in verdict
    assert reader.clicks <= 4


def test_what_raising_a_threshold_loses(reader: Reader, server: Server) -> None:
    reader.open("signals")
    number = next(
        str(limit["limit"])
        for limit in reader.script("return fetch('api/limits').then(a => a.json())")["limits"]
        if limit["key"] == KEY
    )
    reader.open(f"signals?limit={number}")
    field = reader.find("main input[type=number]")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(str(THRESHOLD))
    reader.wait(lambda: f"{KEY}={THRESHOLD}" in reader.text(".command"))
    told = server.explorer.change({"limit": number, "threshold": str(THRESHOLD)})
    shown = {f.find_element(By.TAG_NAME, "dt").text: f.find_element(By.TAG_NAME, "dd").text
             for f in reader.all(".figure")}  # fmt: skip
    assert shown["Documents lost"] == f"−{told['lost']:,}"
    assert told["lost"] > 0
    reader.wait(lambda: f"threshold={THRESHOLD}" in reader.driver.current_url)
    reader.settle()
    assert reader.all(".sides .samples li")


@both_sizes
def test_a_threshold_is_dragged(reader: Reader) -> None:
    reader.open("signals")
    handle = reader.find(".handle .grip")
    before = reader.find(".handle").get_attribute("aria-valuenow")
    reader.script("arguments[0].scrollIntoView({block: 'center'})", handle)
    actions = webdriver.ActionChains(reader.driver)
    actions.click_and_hold(handle).move_by_offset(60, 0).release().perform()
    reader.wait(lambda: reader.find(".handle").get_attribute("aria-valuenow") != before)
    now = reader.find(".handle").get_attribute("aria-valuenow")
    reader.wait(lambda: now in reader.text(".command"))


@both_sizes
def test_two_runs_are_compared(reader: Reader, server: Server) -> None:
    reader.open("compare")
    flips = server.explorer.compare({})["flips"]
    rows = reader.all("table")[0].find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == len(flips)
    assert flips[0]["was"] in rows[0].text
    reader.click(rows[0].find_element(By.TAG_NAME, "a"))
    reader.click(reader.find(".doclink"))
    assert reader.text(".verdict")


def test_the_keyboard_alone_is_enough(reader: Reader) -> None:
    reader.open()

    def focused() -> str:
        return str(reader.script("return document.activeElement.textContent"))

    reader.press(Keys.TAB)
    assert focused() == "Skip to the content"
    for _ in range(4):
        reader.press(Keys.TAB)
        if focused() == "Signals":
            break
    reader.press(Keys.ENTER)
    reader.wait(lambda: reader.text("main h1") == "Signals")
    reader.settle()
    for _ in range(20):
        reader.press(Keys.TAB)
        if reader.script("return document.activeElement.getAttribute('role')") == "slider":
            break
    handle = reader.find(".handle")
    before = handle.get_attribute("aria-valuetext")
    reader.press(Keys.ARROW_RIGHT)
    reader.wait(lambda: reader.find(".handle").get_attribute("aria-valuetext") != before)
    reader.wait(lambda: "threshold=" in reader.driver.current_url)
    reader.settle()
    for _ in range(10):
        reader.press(Keys.TAB)
        if reader.script("return document.activeElement.className") == "doclink":
            break
    reader.press(Keys.ENTER)
    reader.find(".verdict")


def test_the_state_is_in_the_address(reader: Reader) -> None:
    reader.open("documents?language=en&sort=characters&down=1")
    first = reader.text("tbody .doclink")
    reader.click(reader.find("tbody .doclink"))
    reader.driver.back()
    reader.settle()
    assert reader.text("tbody .doclink") == first
    assert "language en" in reader.text(".filters")
    reader.click(reader.find(".filters a"))
    assert "language" not in reader.driver.current_url
    reader.open("lines")
    assert reader.all("td.line")
    reader.open("lines?verdict=kept")  # of which the samples have none
    assert "No line" in reader.text(".empty") and not reader.all("td.line")


def test_empty_and_wrong_states_say_so(reader: Reader) -> None:
    reader.open("documents?q=no-such-url-anywhere")
    assert "Nothing here" in reader.text(".empty")
    reader.open("document?row=99999999")
    assert "no document" in reader.text(".problem")
    reader.open("nowhere")
    assert "no view" in reader.text(".empty")


@both_sizes
@pytest.mark.parametrize("view", _VIEWS)
def test_a_view_fits_its_window_and_axe_finds_nothing_serious(reader: Reader, view: str) -> None:
    reader.open(view)
    assert reader.fits()
    cut = reader.script(
        "return [...document.querySelectorAll('.scroll, .card')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => `${e.getAttribute('aria-label')}: ${e.scrollWidth} in ${e.clientWidth}`)"
    )
    assert cut == []
    assert _faults(reader.driver) == []
    if reader.script("return innerWidth") > 1000:
        # All that depends on the scheme of colours, and colours don't on the window.
        feature = {"name": "prefers-color-scheme", "value": "dark"}
        reader.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        assert _faults(reader.driver, "color-contrast", "link-in-text-block") == []


def test_the_funnel_is_counted_in_tokens(reader: Reader, server: Server) -> None:
    reader.open()
    button = next(b for b in reader.all(".units button") if b.text.startswith("tokens"))
    reader.click(button)
    assert "unit=tokens" in reader.driver.current_url
    ratio = server.explorer.tokens_per_character
    assert ratio
    for stage, row in zip(server.explorer.funnel({}), reader.all(".steps > li"), strict=True):
        left = round(stage["characters_in"] * ratio) - round(stage["characters_removed"] * ratio)
        assert f"{left:,} of " in row.text
    reader.click(reader.find(".facet a"))  # a filter leaves the unit as it is
    assert "unit=tokens" in reader.driver.current_url


@pytest.mark.parametrize("view", ["documents", "funnel", "mix", "duplicates"])
def test_buttons_can_be_read_under_the_mouse(reader: Reader, view: str) -> None:
    reader.open(view)
    for button in reader.all("main button:not(:disabled)"):
        if not button.is_displayed():
            continue
        reader.script("arguments[0].scrollIntoView({block: 'center'})", button)
        webdriver.ActionChains(reader.driver).move_to_element(button).perform()
        colours = reader.script(
            "const of = getComputedStyle(arguments[0]);"
            "return [of.color, of.backgroundColor].map(c => c.match(/[0-9.]+/g).map(Number))",
            button,
        )
        light, dark = sorted(map(_luminance, colours), reverse=True)
        transparent = len(colours[1]) == 4 and colours[1][3] == 0
        assert transparent or (light + 0.05) / (dark + 0.05) >= 4.5, button.text


def _luminance(colour: list[float]) -> float:
    """The relative luminance of WCAG 2."""
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def test_what_a_rule_measures_is_said(reader: Reader, server: Server) -> None:
    explorer = server.explorer
    removed = explorer.documents({"rule": "repetition.top_2gram"})["rows"][0]
    sentence = explorer.meanings["repetition.top_2gram"]
    reader.open(f"document?row={removed['row']}")
    assert sentence in reader.text(".verdict")
    reader.click(reader.find(".verdict a"))
    assert sentence in reader.text("main .card .note")
    assert reader.text("main .card h2") == "repetition.top_2gram"


def test_distinct_and_written_tokens_are_told_apart(reader: Reader, server: Server) -> None:
    run = server.explorer.run({})
    reader.open()
    shown = {f.find_element(By.TAG_NAME, "dt").text: f.find_element(By.TAG_NAME, "dd").text
             for f in reader.all(".figure")}  # fmt: skip
    assert shown["Epochs"] == f"{run['epochs']:.2f}"
    assert shown["Distinct tokens"] != shown["Tokens written"]
    reader.open("mix")
    (row,) = [r for r in reader.all("tbody tr") if r.text.split()[0] == "general"]
    (mixed,) = [r for r in server.explorer.questions["mix"]({})[0]["notes"]["mix"]
                if r["domain"] == "general"]  # fmt: skip
    cells = {c.get_attribute("data-label"): c.text for c in row.find_elements(By.TAG_NAME, "td")}
    assert cells["Distinct tokens"] == f"{mixed['available']:,}"
    assert cells["Tokens written"] == f"{mixed['kept']:,}"
    assert cells["Filled"] == f"{min(100 * mixed['kept'] / mixed['wanted'], 100):.3g} %"


@both_sizes
def test_clusters_are_shown_in_pages(reader: Reader, server: Server) -> None:
    every = server.explorer.clusters({"most": "500"})["clusters"]
    assert len(every) > 25
    reader.open("duplicates")
    assert len(reader.all(".clusters tbody tr")) == 25
    reader.click(next(b for b in reader.all(".pager button") if b.text.startswith("Next")))
    rest = min(len(every) - 25, 25)
    reader.wait(lambda: len(reader.all(".clusters tbody tr")) == rest)
    assert "first=25" in reader.driver.current_url


def test_signals_of_one_language(reader: Reader) -> None:
    reader.open("signals")
    before = reader.text(".legend")
    choice = reader.find(".language select")
    choice.find_element(By.CSS_SELECTOR, "option[value=de]").click()
    reader.wait(lambda: "language=de" in reader.driver.current_url)
    reader.wait(lambda: reader.text(".legend") != before)


def test_two_runs_are_compared_by_a_signal(reader: Reader) -> None:
    reader.open("compare")
    assert KEY in reader.text("main")
    options = reader.all("option[value^=gopher_]")
    choice = next(option for option in options if not option.is_selected())
    name = choice.get_attribute("value")
    choice.click()
    reader.wait(lambda: f"signal={name}" in reader.driver.current_url)
    reader.settle()
    assert "in A" in reader.text("main") and reader.all(".chart rect.kept")


def test_the_difference_is_below_its_document(reader: Reader, server: Server) -> None:
    cluster = server.explorer.clusters({})["clusters"][0]
    reader.open(f"document?row={cluster['first']}")
    member = next(li for li in reader.all(".members li") if "Compare" in li.text)
    reader.click(member.find_element(By.TAG_NAME, "button"))
    reader.wait(lambda: "Loading" not in member.text)
    assert member.find_elements(By.CSS_SELECTOR, ".diff, .empty")


def test_a_table_with_hostile_columns(driver: Any, table_run: Path) -> None:
    explorer = Explorer(str(table_run), str(table_run))
    with serving(Server(explorer)) as server:
        reader = Reader(driver, server.url)
        rows = range(len(explorer.ledger))
        for view in ("documents", "hosts", "compare", *(f"document?row={i}" for i in rows)):
            reader.open(view)
            assert reader.acted() is None
            assert reader.all("main script, main img") == []
            for size in ("phone", "desk"):
                assert reader.fits(size)
            if view.startswith("document?"):
                assert "onerror" in reader.text(".own") and "\\u202e" in reader.text(".own")
        for view, told in (("mix", "no stage that mixes"), ("lines", "No stage")):
            reader.open(view)
            assert told in reader.text(".empty")


def test_names_of_the_users_own_do_nothing(browser: Any, named_run: Path) -> None:
    """At one size: styles alone depend on it."""
    driver = resized(browser)
    explorer = Explorer(str(named_run), str(named_run))
    rules = [limit["reason"] for limit in explorer.limits({})["limits"]]
    rule = next(rule for rule in rules if ACT in rule)
    assert any(of in rule for of in ("script", "style"))
    places = [f"document?row={i}" for i in range(len(explorer.ledger))]
    places += [f"documents?rule={quote(rule)}", f"signals?host={ACT}0"]
    with serving(Server(explorer)) as server:
        reader = Reader(driver, server.url)
        driver.get_log("performance")
        for view in (*_VIEWS, *places):
            reader.open(view)
            assert_inert(reader)
            assert ACT in reader.text("body")
        assert_nothing_left(driver, server.url)
    report = (named_run / "report.html").as_uri()
    driver.get(report)
    driver.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert_inert(Reader(driver, report))
    assert ACT in driver.find_element(By.TAG_NAME, "main").text
    assert_nothing_left(driver, server.url, "file:")


def assert_inert(reader: Reader) -> None:
    """Nothing that a document or a name says is an element of the page."""
    assert reader.acted() is None
    assert reader.all("main script, main img, main iframe, main style, body style") == []
    assert reader.find("main h1, h1").is_displayed()


def assert_nothing_left(driver: Any, *ours: str) -> None:
    """The browser asked nobody but this server."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith((*ours, "about:", "data:"))} == set()


def _faults(driver: Any, *rules: str) -> list[str]:
    """What axe-core finds serious on the page that is open, by some rules or by all.

    Without its sources (`npm ci`) nothing is looked for. Of like rows the first ones are enough.
    """
    if not _AXE.exists():
        return []
    driver.execute_script(f"if (!window.axe) {{ {_AXE.read_text()} }}")
    options = {
        "iframes": False,
        "resultTypes": ["violations"],
        "preload": False,
        **({"runOnly": list(rules)} if rules else {}),
    }
    found = driver.execute_async_script(
        "const [options, done] = arguments;"
        "const exclude = [['tr:nth-child(n+9)'], ['li:nth-child(n+9)']];"
        "axe.run({exclude}, options).then(done)",
        options,
    )
    return [
        f"{fault['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"][:3]
    ]


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_report_is_read_without_script(
    browser: Any, viewed_run: Path, size: str, canary: Canary
) -> None:
    canary.asked.clear()
    driver = resized(browser, size)
    driver.get((viewed_run / "report.html").as_uri())
    driver.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert Reader(driver, "").fits()
    assert "lighthouse" in driver.find_element(By.TAG_NAME, "main").text
    assert driver.execute_script("return window.pwned") is None
    numbers = [
        (cell.get_attribute("data-label"), driver.execute_script(_BEFORE, cell))
        for cell in driver.find_elements(By.CSS_SELECTOR, "#funnel td.n")[:5]
    ]
    shown = [bool(label) and label in before for label, before in numbers]
    assert shown == [size == "phone"] * 5  # where there are no heads, cells have labels
    if size == "desk":
        assert _faults(driver) == []
    assert canary.asked == []


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_report_begins_with_its_numbers_and_the_funnel(
    browser: Any, viewed_run: Path, size: str
) -> None:
    facts = json.loads((viewed_run / "report.json").read_text())
    driver = resized(browser, size)
    driver.get((viewed_run / "report.html").as_uri())
    high = driver.execute_script("return innerHeight")
    figures = driver.find_elements(By.CSS_SELECTOR, ".figure")
    assert [f.find_element(By.TAG_NAME, "dt").text for f in figures] == [
        "Documents", "Kept", "Tokens written",
    ]  # fmt: skip
    rows = driver.find_elements(By.CSS_SELECTOR, "#funnel tbody tr")
    assert [row.text.split()[0] for row in rows] == [e["stage"] for e in facts["funnel"]]
    shown = [*figures, *rows[: 3 if size == "desk" else None]]
    assert all(e.rect["y"] + e.rect["height"] <= high for e in shown)
    whole = driver.execute_script("return document.documentElement.scrollHeight")
    assert whole < 5 * high
    hash_of_the_run = driver.find_element(By.XPATH, f"//code[contains(., '{facts['root']}')]")
    assert not hash_of_the_run.is_displayed()
    driver.get((viewed_run / "report.html").as_uri() + "#run")  # a link unfolds its section
    assert driver.find_element(By.XPATH, f"//code[contains(., '{facts['root']}')]").is_displayed()


def test_the_report_is_printed_whole(browser: Any, viewed_run: Path) -> None:
    driver = resized(browser, "paper", media="print")
    driver.get((viewed_run / "report.html").as_uri())
    folded = driver.find_elements(By.CSS_SELECTOR, "details:not([open]) > :not(summary)")
    assert folded and all(element.size["height"] for element in folded)
    assert driver.find_element(By.CSS_SELECTOR, "#funnel thead").size["height"] > 5


def test_hostile_pages_do_nothing(browser: Any, server: Server, canary: Canary) -> None:
    reader = Reader(resized(browser), server.url)
    canary.asked.clear()
    reader.driver.get_log("performance")
    found = server.explorer.text({"q": "lighthouse keeper counted", "most": "50"})["rows"]
    hostile = [row for row in found if row["url"] in HOSTILE or "evil" in row["url"]]
    assert hostile
    for row in hostile:
        reader.open(f"document?row={row['row']}")
        button = [b for b in reader.all("main button") if b.text.startswith("Show the page")]
        reader.click(button[0])
        frame = reader.find("iframe")
        reader.wait(lambda: reader.all(".blocks li"))
        reader.driver.switch_to.frame(frame)
        assert "lighthouse" in reader.find("body").text
        reader.driver.switch_to.default_content()
        assert reader.acted() is None
    for view in ("documents?q=evil", "hosts", "signals", "duplicates", "funnel"):
        reader.open(view)
        assert reader.acted() is None
        assert reader.all("main script, main img, main iframe") == []
    assert canary.asked == []
    assert_nothing_left(reader.driver, server.url)
