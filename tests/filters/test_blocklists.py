"""Block lists: what a line of each format means, and which URLs it hits."""

from __future__ import annotations

import gzip
import pickle
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import ConfigError
from curation.filters import blocklists
from curation.filters.blocklists import UrlBlocker
from curation.filters.filter_settings import BlockListSettings, default_settings


def blocker(lists: dict[str, str], allow: tuple[str, ...] = (), **words: object) -> UrlBlocker:
    held = {"soft_words": None, "min_soft_words": 2} | words
    return UrlBlocker(BlockListSettings.model_validate({"lists": lists, "allow": allow, **held}))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    adult = tmp_path / "adult"
    adult.mkdir()
    (adult / "domains").write_text("bad.com\nsub.other.org\n10.1.2.3\nBücher.de\n", "utf-8")
    (adult / "urls").write_text("host.com/bad/path\nwww.w.org/x/\n", "utf-8")
    (adult / "expressions").write_text("(a|b)\n", "utf-8")
    (adult / "usage").write_text("black\n", "utf-8")
    (tmp_path / "ads.txt").write_text(
        "! comment\n[Adblock Plus 2.0]\n||ads.net^\n||track.io^$third-party\n@@||ok.ads.net^\n"
        "##.banner\nexample.com##.x\n/foo*bar/\n||p.com/ad/\n||only.com^$domain=x.com\n",
        "utf-8",
    )
    with gzip.open(tmp_path / "hosts.gz", "wt") as file:
        file.write(
            "127.0.0.1 localhost\n0.0.0.0 evil.de # why\n0.0.0.0\tTab.EU\n*.wild.fr\n#no.de\n"
        )
    (tmp_path / "allow").write_text("good.bad.com\n", "utf-8")
    (tmp_path / "soft").write_text("hot\nnude\nsex\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://bad.com/", "adult"),
        ("http://a.BAD.com:80/x", "adult"),
        ("//bad.com./", "adult"),
        ("https://user:p@sub.other.org/?q", "adult"),
        ("bad.com#x", "adult"),
        ("http://10.1.2.3/", "adult"),
        ("https://bücher.de/a", "adult"),
        ("http://xn--bcher-kva.de", "adult"),
        ("https://host.com/bad/path/1", "adult"),
        ("https://www.host.com/bad/path?x", "adult"),
        ("w.org/x", "adult"),
        ("https://ads.net/bad.com", "ads"),
        ("track.io", "ads"),
        ("p.com/ad/1", "ads"),
        ("evil.de", "hosts"),
        ("tab.eu", "hosts"),
        ("a.wild.fr", "hosts"),
        ("https://x.com/hot-sex", "soft_words"),
        ("https://good.bad.com/hot-sex", None),
        ("https://notbad.com/?u=http://bad.com", None),
        ("other.org", None),
        ("http://host.com/bad/pathology", None),
        ("x.ok.ads.net", None),
        ("example.com", None),
        ("p.com", None),
        ("only.com", None),
        ("no.de", None),
        ("localhost", None),
        ("https://x.com/hot-hot", None),
        ("", None),
    ],
)
def test_meaning_of_lines(files: Path, url: str, reason: str | None) -> None:
    lists = {"adult": "adult", "ads": "ads.txt", "hosts": "hosts.gz"}
    held = blocker(
        {k: str(files / v) for k, v in lists.items()},
        (str(files / "allow"),),
        soft_words=str(files / "soft"),
    )
    assert held.check([url]).to_pylist() == [f"blocklist.{reason}" if reason else None]


def test_batches_nulls_and_pickles(files: Path) -> None:
    held = pickle.loads(pickle.dumps(blocker({"x": str(files / "ads.txt")})))
    urls = pa.array(["skip", "ads.net", None, "a.b", "x.track.io/y"]).slice(1)
    assert held.check(urls).to_pylist() == ["blocklist.x", None, None, "blocklist.x"]
    assert held.check(pa.array([], pa.string())).to_pylist() == []
    assert len(held) == 3


def test_soft_words_and_thresholds(files: Path) -> None:
    held = blocker({}, soft_words=str(files / "soft"), min_soft_words=1)
    assert held.check(["a.b/Nude.html", "a.b/nudes"]).to_pylist() == ["blocklist.soft_words", None]
    held = blocker({}, soft_words=str(files / "soft"), min_soft_words=3)
    assert held.check(["a.b/nude-sex", "sex.hot/nude"]).to_pylist() == [
        None,
        "blocklist.soft_words",
    ]


def test_the_first_list_names_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x.org\n@@||ok.x.org^\n", "utf-8")
    (tmp_path / "b").write_text("x.org\n", "utf-8")
    held = blocker({"a": str(tmp_path / "a"), "b": str(tmp_path / "b")})
    assert held.check(["x.org", "ok.x.org"]).to_pylist() == ["blocklist.a", "blocklist.b"]


def test_unreadable_lists_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        blocker({"x": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match="no block list"):
        blocker({"x": str(tmp_path)})


@pytest.fixture(scope="module")
def ut1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """UT1 as published: folders by category, one archive of all and one of a category."""
    top = tmp_path_factory.mktemp("ut1")
    hosts = [
        f"site-{i * 2654435761 % 2**32:x}.{('com', 'co.uk', 'рф')[i % 3]}" for i in range(20_000)
    ]
    odd = [
        "",
        "# comment",
        "UPPER.com",
        "dotted.org.",
        "10.20.30.40",
        "xn--bcher-kva.example",
        "  ",
    ]
    folder = top / "blacklists"
    for category, lines in {"adult": hosts + odd, "gambling": ["bets.example"]}.items():
        (folder / category).mkdir(parents=True)
        (folder / category / "domains").write_bytes("\r\n".join([*lines, ""]).encode())
        (folder / category / "urls").write_text("free.example/~someone\n", "utf-8")
        (folder / category / "expressions").write_text("(^|[-.])(hot|xx)x\n", "utf-8")
        (folder / category / "usage").write_text("black\n", "utf-8")
    (folder / "porn").symlink_to("adult")
    (folder / "README").write_text("Université Toulouse Capitole\n", "utf-8")
    with tarfile.open(top / "blacklists.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(folder, "blacklists")
    with tarfile.open(top / "adult.tgz", "w:gz", compresslevel=1) as archive:
        archive.add(folder / "adult", "adult")
    return top


@pytest.mark.parametrize(
    "path", ["blacklists", "blacklists/adult", "blacklists.tar.gz", "adult.tgz"]
)
def test_ut1_in_one_line(ut1: Path, path: str) -> None:
    held = blocker({"adult": str(ut1 / path)})
    assert len(held) == 20_000 + 4 + 1
    urls = {
        "https://www.site-0.com/a": True,
        "http://site-9e3779b1.co.uk": True,
        f"https://site-{2 * 2654435761 % 2**32:x}.рф/": True,
        "https://upper.COM/": True,
        "https://a.dotted.org/": True,
        "http://10.20.30.40/": True,
        "https://bücher.example/": True,
        "https://free.example/~someone/1": True,
        "https://free.example/": False,
        "https://bets.example/": False,
        "https://hot-xxx.example/": False,
    }
    assert [r is not None for r in held.check(list(urls)).to_pylist()] == list(urls.values())


@pytest.mark.parametrize("path", ["blacklists", "blacklists.tar.gz"])
def test_ut1_categories_are_chosen_by_reason(ut1: Path, path: str) -> None:
    held = blocker({name: str(ut1 / path) for name in ("gambling", "porn")})
    assert held.check(["bets.example", "site-0.com"]).to_pylist() == [
        "blocklist.gambling",
        "blocklist.porn",
    ]
    with pytest.raises(ConfigError, match="no category 'drugs'; it has: adult, gambling"):
        blocker({"drugs": str(ut1 / path)})


def test_archives_without_lists(tmp_path: Path) -> None:
    (tmp_path / "broken.tar.gz").write_bytes(gzip.compress(b"no archive"))
    with pytest.raises(ConfigError, match="broken"):
        blocker({"x": str(tmp_path / "broken.tar.gz")})
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    with pytest.raises(ConfigError, match="no UT1 category"):
        blocker({"x": str(tmp_path / "empty.tar")})


LABEL = st.text("abc1", min_size=1, max_size=3)
HOST = st.lists(LABEL, min_size=2, max_size=4).map(".".join)


@given(st.lists(HOST, max_size=8), st.lists(HOST, min_size=1, max_size=8))
@settings(max_examples=100)
def test_hosts_block_themselves_and_what_is_below(
    tmp_path_factory: pytest.TempPathFactory, listed: list[str], hosts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lists") / "list"
    path.write_text("\n".join(listed), "utf-8")
    names = [host for host in listed if not host.replace(".", "").isdigit()]
    hosts = [host for host in hosts if not host.replace(".", "").isdigit()]
    path.write_text("\n".join(names), "utf-8")
    found = blocker({"l": str(path)}).check([f"https://{host}/a" for host in hosts])
    expected = [any(h == n or h.endswith("." + n) for n in names) for h in hosts]
    assert [r is not None for r in found.to_pylist()] == expected


def test_default_lists_load() -> None:
    held = blocklists.load(default_settings().blocklists)
    assert held.check(
        ["https://a.org/news/sex-education", "https://a.org/porn-xxx"]
    ).to_pylist() == [
        None,
        "blocklist.soft_words",
    ]
