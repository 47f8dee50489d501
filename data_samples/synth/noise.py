# ruff: noqa: E501 (markup and tables)
"""What a curated corpus must not hold: spam, logs, adult keywords, gibberish, empty shells."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from synth.dice import Dice
from synth.pages import Page, crawl_time
from synth.templates import Dress, Site, listing_page
from synth.text import Text

#: Fates where several rules may justly fire first.
ANY_FILTER = "filter:*|classify:quality.low_score"
#: Sentences that one page says often, and pages of one shop share, go as repeated lines.
_LINES = "dedup-lines:lines.too_short"
#: Quality is judged before rules.
_JUNK = "classify:quality.low_score"
SPAM = f"{ANY_FILTER}|identify-language:*|dedup-documents:document.near|{_LINES}"
EMPTY = f"extract:*|identify-language:*|{ANY_FILTER}|dedup-documents:*|{_LINES}"


def _shell(title: str, body: str, language: str = "en") -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n"
        "</body></html>\n"
    )


def _page(host: str, path: str, kind: str, language: str, html: str, fate: str) -> Page:
    date = crawl_time(host + path, "2024-03")
    return Page(f"http://{host}{path}", date, kind, language, html, fate=fate)


_GOODS = (
    "cheap watches", "designer handbags", "replica sneakers", "weight loss pills", "diet tea",
    "payday loan", "instant credit", "car insurance quotes", "seo backlinks", "essay writing",
    "free ringtones", "mobile unlock codes", "hair growth serum", "teeth whitening kit",
    "wholesale sunglasses", "discount printer ink", "work from home", "forex signals",
    "crypto giveaway", "vpn coupon", "cheap flights", "hotel deals", "mattress sale",
)  # fmt: skip
_PUSH = ("buy", "best", "order", "discount", "online", "no prescription", "free shipping", "top",
         "sale", "official", "2024", "review", "near me", "price", "coupon", "cheap")  # fmt: skip


def keyword_stuffing() -> list[Page]:
    """Doorway pages: one pair of phrases over and over in changing order."""
    pages = []
    for n in range(8):
        dice = Dice(f"stuffing {n}")
        goods = dice.sample(_GOODS, 3)
        lines = []
        for _ in range(24):
            words = [f"{dice.pick(_PUSH)} {dice.pick(goods)}" for _ in range(6)]
            lines.append(f"<p>{' '.join(words)}</p>")
        html = _shell(f"{goods[0]} - {goods[1]} - best price", "\n".join(lines))
        host = f"best-{goods[0].replace(' ', '-')}-{n}.example"
        pages.append(_page(host, "/index.html", "spam", "en", html, SPAM))
    return pages


def repeated_pitch() -> list[Page]:
    """Sales pages that say the same sentence in every paragraph."""
    pitches = (
        "Click the green button below now and claim your exclusive bonus before the offer ends today.",
        "Our members earn money every single day without any work and so can you if you join us now.",
        "This is the only supplement which doctors do not want you to know about and that really works.",
        "You have been selected for a reward and the only thing that you have to do is confirm it here.",
    )
    pages = []
    for n, pitch in enumerate(pitches):
        other = pitches[(n + 1) % len(pitches)]
        body = "\n".join(f"<p>{pitch}</p>" if i % 4 else f"<p>{other}</p>" for i in range(20))
        html = _shell("Limited offer", body)
        pages.append(_page(f"offer{n}.example", "/landing", "spam", "en", html, SPAM))
    return pages


def link_farm() -> list[Page]:
    pages = []
    for n in range(4):
        dice = Dice(f"links {n}")
        items = "\n".join(
            f'<li><a href="http://{dice.hex(8)}.example/">{dice.pick(_PUSH)} {dice.pick(_GOODS)}</a></li>'
            for _ in range(90)
        )
        html = _shell("Partner directory", f"<ul>{items}</ul>")
        pages.append(_page(f"links{n}.example", "/partners.html", "spam", "en", html, EMPTY))
    return pages


def log_dumps() -> list[Page]:
    """Machine logs pasted into a page: long, regular, without a sentence."""
    pages = []
    for n in range(9):
        dice = Dice(f"log {n}")
        kind = ("access", "trace", "syslog")[n % 3]
        lines = []
        for _ in range(160):
            clock = f"{dice.below(24):02}:{dice.below(60):02}:{dice.below(60):02}"
            if kind == "access":
                address = ".".join(str(dice.between(10, 250)) for _ in range(4))
                lines.append(
                    f'{address} - - [12/Mar/2024:{clock} +0000] "GET /static/chunk-{dice.hex(6)}.js '
                    f'HTTP/1.1" 200 {dice.between(400, 90000)} "-" "Mozilla/5.0 (X11; Linux x86_64)"'
                )
            elif kind == "trace":
                lines.append(
                    f"2024-03-12 {clock},{dice.below(1000):03} ERROR [worker-{dice.below(16)}] "
                    f"org.acme.store.Connection - Connection refused: connect to db-{dice.below(9)} "
                    f"failed after {dice.between(100, 999)} ms, retrying"
                )
            else:
                lines.append(
                    f"Mar 12 {clock} host{n} kernel: [{dice.between(1000, 99999)}.{dice.below(999999):06}] "
                    f"usb 1-{dice.between(1, 4)}: device descriptor read/64, error -{dice.between(32, 110)}"
                )
        body = f"<pre>{escape(chr(10).join(lines))}</pre>"
        html = _shell(f"{kind} log {n}", body)
        fate = f"filter:llama3.line_ngram_coverage|{SPAM}|extract:*"
        pages.append(_page("pastebin.example", f"/raw/{dice.hex(8)}", "log", "en", html, fate))
    return pages


_ADULT = {
    "en": "porn porno xxx nudes hentai sex nude naked erotic webcam sexy",
    "de": "porno xxx sex nackt erotik sexy nackte pornos",
    "fr": "porno xxx sexe nue érotique sexy nu pornos",
    "es": "porno xxx sexo desnuda erótico sexy desnudo pornos",
    "ru": "порно секс голые эротика порнуха эротические голая",
}
_ADULT_FILL = {
    "en": "free videos and pictures of the best {} with {} for you and more {} in the {} gallery",
    "de": "die besten {} und {} für dich mit {} und noch mehr {} in der galerie",
    "fr": "les meilleures vidéos de {} et de {} avec {} pour vous et encore plus de {} ici",
    "es": "los mejores videos de {} y de {} con {} para ti y todavía más {} en la galería",
    "ru": "лучшие видео {} и {} для тебя и ещё больше {} на нашем сайте с {}",
}


def adult_pages() -> list[Page]:
    """Keyword pages of pornographic sites, each language twice."""
    pages = []
    for language, words in _ADULT.items():
        for n in range(2):
            dice = Dice(f"adult {language} {n}")
            lines = []
            for _ in range(26):
                line = _ADULT_FILL[language]
                while "{}" in line:
                    line = line.replace("{}", dice.pick(words.split()), 1)
                lines.append(f"<p>{line}.</p>")
            html = _shell("xxx " + dice.pick(words.split()), "\n".join(lines), language)
            fate = f"filter:llama3.dirty_word_ratio|{SPAM}"
            host = f"hot-{language}{n}.example"
            pages.append(_page(host, "/videos/", "adult", language, html, fate))
    return pages


def casino_pages() -> list[Page]:
    """Gambling advertisement on addresses that block lists know by their words."""
    games = ("slots", "roulette", "blackjack", "baccarat", "poker", "bingo", "keno", "craps")
    pages = []
    for n in range(4):
        dice = Dice(f"casino {n}")
        lines = [
            f"<p>Casino {dice.pick(games)} bonus {dice.between(50, 500)} free spins online casino "
            f"{dice.pick(games)} jackpot {dice.pick(games)} betting odds no deposit bonus code "
            f"{dice.hex(5).upper()} play {dice.pick(games)} casino now</p>"
            for _ in range(22)
        ]
        html = _shell("Casino bonus without deposit", "\n".join(lines))
        path = "/casino/betting/poker-bonus.html"
        fate = f"filter:blocklist.*|extract:blocklist.*|{SPAM}"
        pages.append(_page(f"online-casino-{n}.example", path, "spam", "en", html, fate))
    return pages


def gibberish() -> list[Page]:
    """Letters without a language: random words, hexadecimal, a mixture of scripts."""
    pages = []
    alphabets = (
        "qxzjkvwpbfghcmdt", "0123456789abcdef", "аеяжqщzыøßłþñçğ", "ασდქღწאבגжшщ", "zxcvbnmasdfghjkl",
        "ﺍﺏдфकखกขあア가나",
    )  # fmt: skip
    for n, letters in enumerate(alphabets):
        dice = Dice(f"gibberish {n}")
        lines = []
        for _ in range(14):
            words = [
                "".join(dice.pick(letters) for _ in range(dice.between(2, 14))) for _ in range(22)
            ]
            lines.append(f"<p>{' '.join(words)}</p>")
        html = _shell("".join(dice.pick(letters) for _ in range(9)), "\n".join(lines))
        fate = "identify-language:language.low_score|filter:*"  # letters of some scripts, at random
        pages.append(_page(f"noise{n}.example", "/", "gibberish", "und", html, fate))
    return pages


def empty_shells() -> list[Page]:
    """Pages without content: login, scripts only, frames, construction sites, an empty body."""
    bodies = {
        "login": '<form action="/login"><label>User name <input name="u"></label>'
        '<label>Password <input type="password"></label><button>Log in</button></form>',
        "app": '<div id="root"></div><noscript>You need to enable scripts to run this app.</noscript>'
        '<script src="/main.3f2a.js"></script>',
        "construction": "<p>This page is under construction. Please come back soon.</p>",
        "frames": '<iframe src="/content.html" width="100%" height="900"></iframe>',
        "blank": "",
        "parked": "<p>This domain may be for sale. Click here to inquire about this domain.</p>",
        "gallery": "".join(f'<img src="/img/{i}.jpg" width="200">' for i in range(40)),
        "consent": "<p>Before you continue, choose how we and 734 partners use your data.</p>"
        "<button>Accept all</button><button>Reject all</button>",
    }
    return [
        _page(f"{name}.shells.example", "/", "empty", "en", _shell(name.title(), body), EMPTY)
        for name, body in bodies.items()
    ]


def teasers(site: Site, titles: list[str]) -> list[Page]:
    """Front pages made of cut-off beginnings, and bullet lists without a sentence."""
    pages = []
    for n in range(4):
        dice = Dice(f"teasers {n}")
        chosen = dice.sample(titles, 18)
        if n % 2:
            items = "".join(f"<li>{escape(t)}</li>\n" for t in chosen * 2)
            body = f"<ul>\n{items}</ul>"
        else:
            body = "\n".join(
                f"<div class='teaser'><h3>{escape(t)}</h3><p>{escape(' '.join(t.split()[:4]))} and ...</p></div>"
                for t in chosen
            )
        html = _shell(f"Overview {n}", body)
        pages.append(_page(site.host, f"/overview-{n}", "listing", "en", html, EMPTY))
    return pages


def listings(site: Site) -> list[Page]:
    """Category pages of a shop: names and prices."""
    stuff = ("bowl", "towel", "lamp", "brush", "jar", "basket", "tray", "hook", "mug", "knife",
             "board", "cushion", "vase", "clock", "stool", "rack")  # fmt: skip
    materials = ("oak", "linen", "brass", "glass", "steel", "cork", "felt", "clay", "bamboo")
    pages = []
    for n in range(8):
        dice = Dice(f"listing {n}")
        cards = [
            (
                f"{dice.pick(materials)} {dice.pick(stuff)} {dice.between(10, 99)}".capitalize(),
                f"€ {dice.between(4, 160)}.{dice.between(0, 9)}0",
            )
            for _ in range(36)
        ]
        path = f"/c/{dice.pick(materials)}-{n}?sort=price"
        html = listing_page(site, f"Everything of {dice.pick(materials)}", cards, Dress(path, ""))
        page = _page(site.host, path, "listing", "en", html, EMPTY)
        pages.append(replace(page, server=site.server))
    return pages


_LOREM = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "adipiscing",
    "elit",
    "sed",
    "do",
    "eiusmod",
    "tempor",
    "incididunt",
    "ut",
    "labore",
    "et",
    "dolore",
    "magna",
    "aliqua",
    "enim",
    "ad",
    "minim",
    "veniam",
    "quis",
    "nostrud",
    "exercitation",
    "ullamco",
    "laboris",
    "nisi",
    "aliquip",
    "ex",
    "ea",
    "commodo",
    "consequat",
    "duis",
    "aute",
    "irure",
    "in",
    "reprehenderit",
    "voluptate",
    "velit",
    "esse",
]


def placeholders() -> list[Page]:
    """Templates that went online with filler text."""
    pages = []
    for n in range(2):
        dice = Dice(f"lorem {n}")
        paragraphs = []
        for _ in range(6):
            sentences = []
            for _ in range(5):
                words = [dice.pick(_LOREM) for _ in range(dice.between(8, 16))]
                sentences.append(" ".join(words).capitalize() + ".")
            paragraphs.append(f"<p>Lorem ipsum dolor sit amet. {' '.join(sentences)}</p>")
        html = _shell("Our new web site", "\n".join(paragraphs), "en")
        fate = f"filter:c4.lorem_ipsum|{SPAM}"
        pages.append(_page(f"newsite{n}.example", "/about", "placeholder", "la", html, fate))
    return pages


def http_errors() -> list[Page]:
    """Answers that are no document: error pages with a long friendly text, redirects."""
    text = (
        "<p>The page that you asked for is not here any more. It may have been moved, renamed or "
        "deleted, or perhaps there was a typing error in the address. Please use the search at the "
        "top of the page or start again from the home page, where you find all our sections. If "
        "you think that this is our fault, tell the webmaster what you were looking for and where "
        "the link was. We are sorry for the trouble and will repair whatever can be repaired.</p>"
    )
    rows = (
        ("404 Not Found", "/missing/a.html", ()),
        ("404 Not Found", "/missing/b.html", ()),
        ("410 Gone", "/old/catalogue.html", ()),
        ("403 Forbidden", "/members/", ()),
        ("500 Internal Server Error", "/search?q=%00", ()),
        ("503 Service Unavailable", "/maintenance", (("Retry-After", "3600"),)),
        ("301 Moved Permanently", "/moved", (("Location", "https://harbourpost.example/"),)),
        ("302 Found", "/go?to=12", (("Location", "https://harbourpost.example/s1/"),)),
    )
    return [
        replace(
            _page(
                "harbourpost.example",
                path,
                "error",
                "en",
                _shell(status, text),
                "extract:http.status",
            ),
            status=status,
            extra_headers=headers,
        )
        for status, path, headers in rows
    ]


#: Texts whose own pages are broken beyond reading (`damage.py`): free to be used here.
_BASES = ("index-funds", "river-names", "climbing-knots", "paper-plane")
_SENTENCES = ("salt-roads", "tram-timetable", "hedgehog-gap", "stone-skipping", "museum-labels",
              "allergy-season")  # fmt: skip
_SHORT = (
    "The office is open from Monday to Thursday between nine and noon. Please bring the form that "
    "was sent to you by letter, and a passport or another paper with a photograph. Parking is free "
    "for an hour behind the house.",
    "Municipal administration reorganises neighbourhood responsibilities: registration certificates, "
    "construction permissions, environmental complaints and educational allowances are henceforth "
    "processed electronically. Applicants without appropriate equipment receive personal assistance "
    "at the information counter between Wednesday and Saturday, preferably following appointment by "
    "correspondence.",
)


def single_rules(texts: dict[str, Text]) -> list[Page]:
    """Pages that are sound but for one thing, so that exactly one rule has to remove them."""

    def probe(name: str, fate: str, lines: list[str]) -> Page:
        html = _shell("Notes", "\n".join(f"<p>{escape(x, quote=False)}</p>" for x in lines))
        return _page("probes.example", f"/{name}.html", "probe", "en", html, fate)

    pages = []
    for n, slug in enumerate(_BASES):
        lines = list(texts[slug].prose)
        if n < 2:
            lines.insert(2, "Lorem ipsum dolor sit amet, to be replaced before we go online.")
            pages.append(probe(f"filler-{n}", "filter:c4.lorem_ipsum", lines))
        else:
            words = Dice(f"words {n}").shuffled(_ADULT["en"].split()[:5]) * 2
            lines = [f"{line} See {words[2 * i]} and {words[2 * i + 1]} pictures here."
                     for i, line in enumerate(lines)]  # fmt: skip
            pages.append(probe(f"words-{n}", "filter:llama3.dirty_word_ratio", lines))
    sentences = [s for slug in _SENTENCES for line in texts[slug].prose for s in line.split(". ")]
    half = len(sentences) // 2
    bullets = [f"• {s.rstrip('.')}." for s in sentences[:half]]
    pages.append(probe("bullets", "filter:gopher.bullet_line_ratio", bullets))
    starts = [f"{' '.join(s.split()[:9])}..." for s in sentences[half:] if len(s.split()) > 11]
    cut = "filter:gopher.ellipsis_line_ratio|filter:gopher.symbol_hash_ratio"
    pages.append(probe("beginnings", cut, starts))
    for n, line in enumerate(_SHORT):
        fate = f"filter:gopher.word_count|{_LINES}|{_JUNK}"
        pages.append(probe(f"short-{n}", fate, [line]))
    dice = Dice("english log")
    entries = [
        f"2024-03-{dice.between(1, 28):02} {dice.below(24):02}:{dice.below(60):02} the request from "
        f"the {dice.pick(_GOODS)} page was not answered in time and it will be tried again in "
        f"{dice.between(2, 90)} seconds"
        for _ in range(70)
    ]
    # The lines may be cut out one by one before the rules look at what is left: nothing.
    fate = f"filter:llama3.line_ngram_coverage|filter:repetition.*|filter:gopher.word_count|{_JUNK}"
    pages.append(probe("log", fate, entries))
    return pages


def all_noise(shop: Site, news: Site, titles: list[str], texts: dict[str, Text]) -> list[Page]:
    return [
        *single_rules(texts),
        *keyword_stuffing(), *repeated_pitch(), *link_farm(), *log_dumps(), *adult_pages(),
        *casino_pages(), *gibberish(), *empty_shells(), *teasers(news, titles), *listings(shop),
        *placeholders(), *http_errors(),
    ]  # fmt: skip
