# ruff: noqa: E501 (markup and tables)
"""Page skeletons: what stands around a text on a news site, a blog, a forum, a shop, a manual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from synth.dice import Dice
from synth.render import blocks_html, posts
from synth.text import Block, Text


@dataclass(frozen=True)
class Site:
    """A web site: everything its pages repeat. `inside` are lines set into the running text."""

    host: str
    name: str
    language: str
    template: str
    nav: tuple[str, ...]
    cookies: str
    footer: str
    related_heading: str
    related: tuple[str, ...]
    byline: str
    inside: tuple[str, ...] = ()
    server: str = "nginx"


@dataclass(frozen=True)
class Dress:
    """How one page is dressed: forms of formulas and code, declared encoding, date shown."""

    path: str
    day: str
    math: str | None = None
    code: str = "plain"
    meta_charset: str = ""
    links: tuple[tuple[str, str], ...] = ()


def _nav(site: Site) -> str:
    items = "".join(f'<li><a href="/s{i}/">{escape(n)}</a></li>' for i, n in enumerate(site.nav))
    return f'<nav class="main-nav" role="navigation"><ul>{items}</ul></nav>'


def _related(site: Site, dress: Dress) -> str:
    dice = Dice("related " + dress.path)
    links = list(dress.links) or [
        (f"/r/{dice.hex(6)}", title) for title in dice.sample(site.related, 4)
    ]
    items = "".join(f'<li><a href="{href}">{escape(title)}</a></li>' for href, title in links)
    return f"<h3>{escape(site.related_heading)}</h3><ul>{items}</ul>"


def _charset(dress: Dress) -> str:
    if not dress.meta_charset:
        return ""
    if dress.meta_charset.startswith("http-equiv:"):
        label = dress.meta_charset.partition(":")[2]
        return f'<meta http-equiv="Content-Type" content="text/html; charset={label}">\n'
    return f'<meta charset="{dress.meta_charset}">\n'


def _head(site: Site, text: Text, dress: Dress) -> str:
    return (
        f"<head>\n{_charset(dress)}<title>{escape(text.title)} - {escape(site.name)}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="canonical" href="https://{site.host}{escape(dress.path)}">\n'
        f'<meta property="og:title" content="{escape(text.title)}">\n'
        f'<meta property="article:published_time" content="{dress.day}T08:00:00Z">\n'
        '<link rel="stylesheet" href="/static/site.css">\n'
        "<style>.hidden{display:none} .ad{min-height:90px}</style>\n"
        "<script>window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments);}"
        "gtag('js',new Date());</script>\n</head>"
    )


def _with_inside(site: Site, blocks: Sequence[Block]) -> list[Block]:
    """Set the site's repeated lines behind the first and before the last paragraph."""
    out = list(blocks)
    places = [i for i, b in enumerate(out) if b.kind == "p"]
    if len(places) < 2:
        return out
    for place, line in zip((places[0] + 1, places[-1] + 1), site.inside, strict=False):
        out.insert(place, Block("p", line))
    return out


def _body(site: Site, text: Text, dress: Dress) -> str:
    return blocks_html(_with_inside(site, text.blocks), dress.math, dress.code)


def _cookie(site: Site) -> str:
    return (
        '<div id="cookie-banner" class="cookie-consent" role="dialog"><p>'
        f"{escape(site.cookies)}</p><button>OK</button></div>"
    )


def _footer(site: Site) -> str:
    return f'<footer class="site-footer"><p>{escape(site.footer)}</p></footer>'


def news(site: Site, text: Text, dress: Dress) -> str:
    """A newspaper: masthead, breadcrumb, share bar, related stories, cookie banner."""
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body class="article-page">
{_cookie(site)}
<header class="masthead"><a class="logo" href="/">{escape(site.name)}</a>{_nav(site)}</header>
<div class="breadcrumb"><a href="/">{escape(site.nav[0])}</a> &rsaquo; <a href="/t/">{escape(site.nav[1])}</a></div>
<main>
<article class="story" itemscope itemtype="https://schema.org/NewsArticle">
<h1 itemprop="headline">{escape(text.title)}</h1>
<div class="byline"><span class="author">{escape(site.byline)}</span> <time datetime="{dress.day}">{dress.day}</time></div>
<div class="share-bar"><a href="#">Facebook</a> <a href="#">X</a> <a href="#">E-mail</a></div>
<div class="article-body" itemprop="articleBody">
{_body(site, text, dress)}
</div>
</article>
<aside class="related-stories">{_related(site, dress)}</aside>
</main>
{_footer(site)}
<script type="application/ld+json">{{"@context":"https://schema.org","@type":"NewsArticle","datePublished":"{dress.day}"}}</script>
<script async src="/static/app.js"></script>
</body>
</html>
"""


def blog(site: Site, text: Text, dress: Dress) -> str:
    """A weblog: entry, tag line, sidebar widgets."""
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body class="single single-post">
<div id="page" class="site">
<header id="masthead" class="site-header"><p class="site-title"><a href="/">{escape(site.name)}</a></p>{_nav(site)}</header>
<div id="content" class="site-content">
<div id="primary" class="content-area">
<article id="post-{len(text.slug)}" class="post type-post hentry">
<header class="entry-header"><h1 class="entry-title">{escape(text.title)}</h1>
<div class="entry-meta"><span class="posted-on">{dress.day}</span> <span class="byline">{escape(site.byline)}</span></div></header>
<div class="entry-content">
{_body(site, text, dress)}
</div>
<footer class="entry-footer"><span class="tags-links"><a href="/tag/{text.topic}/" rel="tag">{text.topic}</a></span></footer>
</article>
</div>
<aside id="secondary" class="widget-area sidebar"><section class="widget widget_recent_entries">{_related(site, dress)}</section></aside>
</div>
{_footer(site)}
{_cookie(site)}
</div>
</body>
</html>
"""


def legacy(site: Site, text: Text, dress: Dress) -> str:
    """HTML 4 as of 1999: layout tables, upper-case tags, font elements."""
    menu = "<BR>\n".join(f'<A HREF="s{i}.html">{escape(n)}</A>' for i, n in enumerate(site.nav))
    body = _body(site, text, dress)
    for tag in ("p", "h2", "ul", "li", "blockquote"):
        body = body.replace(f"<{tag}>", f"<{tag.upper()}>").replace(
            f"</{tag}>", f"</{tag.upper()}>"
        )
    return f"""<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">
<HTML>
<HEAD>
{_charset(dress)}<TITLE>{escape(text.title)}</TITLE>
</HEAD>
<BODY BGCOLOR="#FFFFFF" TEXT="#000000">
<TABLE WIDTH="100%" BORDER=0 CELLPADDING=6>
<TR><TD COLSPAN=2 BGCOLOR="#336699"><FONT COLOR="#FFFFFF" SIZE=5>{escape(site.name)}</FONT></TD></TR>
<TR VALIGN=TOP><TD WIDTH=140 BGCOLOR="#EEEEEE"><FONT SIZE=2>
{menu}
</FONT></TD>
<TD>
<H1>{escape(text.title)}</H1>
{body}
</TD></TR>
<TR><TD COLSPAN=2 ALIGN=CENTER><FONT SIZE=1>{escape(site.footer)}</FONT></TD></TR>
</TABLE>
</BODY>
</HTML>
"""


def docs(site: Site, text: Text, dress: Dress) -> str:
    """A software manual as documentation generators write it."""
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body>
<div class="related" role="navigation" aria-label="related navigation"><ul><li class="right"><a href="/genindex.html">index</a> |</li><li class="right"><a href="/next.html">next</a> |</li><li><a href="/">{escape(site.name)}</a> &raquo;</li></ul></div>
<div class="document">
<div class="documentwrapper"><div class="bodywrapper">
<div class="body" role="main">
<section id="{text.slug}">
<h1>{escape(text.title)}<a class="headerlink" href="#{text.slug}" title="Link to this heading">¶</a></h1>
{_body(site, text, dress)}
</section>
</div>
</div></div>
<div class="sphinxsidebar" role="navigation" aria-label="Main"><div class="sphinxsidebarwrapper">{_nav(site)}{_related(site, dress)}
<div id="searchbox"><form action="/search.html"><input type="text" name="q"><input type="submit" value="Go"></form></div></div></div>
</div>
<div class="footer" role="contentinfo">{escape(site.footer)}</div>
</body>
</html>
"""


def wiki(site: Site, text: Text, dress: Dress) -> str:
    """An encyclopaedia page: site notice or cookie bar, navigation portlets, categories."""
    notice = f'<div id="siteNotice" class="mw-body-content">{escape(site.cookies)}</div>'
    cookies = (
        '<div class="mw-cookiewarning-container banner-container"><div class="mw-cookiewarning-text">'
        f'<span>{escape(site.cookies)}</span></div><form method="POST"><button>OK</button></form></div>'
    )
    return f"""<!DOCTYPE html>
<html class="client-nojs" lang="{site.language}" dir="{"rtl" if site.language in ("ar", "he", "fa") else "ltr"}">
{_head(site, text, dress)}
<body class="mediawiki ns-0 ns-subject skin-vector">
<div id="mw-page-base" class="noprint"></div>
<div id="content" class="mw-body" role="main">
{notice if site.language == "en" else ""}
<h1 id="firstHeading" class="firstHeading">{escape(text.title)}</h1>
<div id="bodyContent" class="mw-body-content">
<div id="mw-content-text" class="mw-body-content"><div class="mw-parser-output">
{_body(site, text, dress)}
</div></div>
<div id="catlinks" class="catlinks"><ul><li><a href="/c/{text.topic}">{text.topic}</a></li></ul></div>
</div>
</div>
<div id="mw-navigation">{_nav(site)}<div class="portal" role="navigation">{_related(site, dress)}</div></div>
<footer id="footer" class="mw-footer" role="contentinfo"><ul><li>{escape(site.footer)}</li></ul></footer>
{"" if site.language == "en" else cookies}
</body>
</html>
"""


def divs(site: Site, text: Text, dress: Dress) -> str:
    """A page built by a front-end framework: machine-made class names, hardly a semantic tag."""
    dice = Dice("css " + site.host)
    a, b, c, d = (f"css-{dice.hex(6)}" for _ in range(4))
    menu = "".join(f'<a class="{a}" href="/{i}">{escape(n)}</a>' for i, n in enumerate(site.nav))
    return f"""<!doctype html><html lang="{site.language}">{_head(site, text, dress)}<body><div id="__next"><div class="{b}"><div class="{b} header"><div class="{a} navbar">{menu}</div></div><div class="{c}"><div class="{d}"><h1>{escape(text.title)}</h1><div class="{a} meta">{escape(site.byline)} · {dress.day}</div><div class="{d} content">
{_body(site, text, dress)}
</div></div><div class="{a} sidebar">{_related(site, dress)}</div></div><div class="{b} footer">{escape(site.footer)}</div></div></div>{_cookie(site)}<script id="__NEXT_DATA__" type="application/json">{{"props":{{"pageProps":{{"slug":"{text.slug}"}}}},"buildId":"{dice.hex(8)}"}}</script></body></html>
"""


def minimal(site: Site, text: Text, dress: Dress) -> str:
    """A home-made page with a heading and paragraphs and nothing around them."""
    return (
        f"<html><head>{_charset(dress)}<title>{escape(text.title)}</title></head>\n<body>\n"
        f"<h1>{escape(text.title)}</h1>\n{_body(site, text, dress)}\n"
        f"<hr>\n<address>{escape(site.footer)}</address>\n</body></html>\n"
    )


def forum(site: Site, text: Text, dress: Dress) -> str:
    """A bulletin board: posts with poster profiles, quote buttons, pagination."""
    dice = Dice("forum " + text.slug)
    out = []
    for number, (author, when, blocks) in enumerate(posts(text), 1):
        out.append(
            f'<div id="p{number}" class="post has-profile"><div class="inner">'
            f'<dl class="postprofile"><dt class="has-profile-rank"><a class="username" href="/u/{author}">'
            f'{escape(author)}</a></dt><dd class="profile-posts">Posts: {dice.between(3, 4000)}</dd></dl>'
            f'<div class="postbody"><p class="author">by <strong>{escape(author)}</strong> » '
            f'<time datetime="{when}">{when}</time></p><ul class="post-buttons"><li><a href="#">Quote</a></li>'
            f'<li><a href="#">Report this post</a></li></ul>\n<div class="content">'
            f"{blocks_html(blocks, dress.math, dress.code)}</div></div></div></div>"
        )
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body id="phpbb" class="section-viewtopic">
<div id="wrap" class="wrap">
<div id="page-header"><div class="headerbar"><h1><a href="/">{escape(site.name)}</a></h1></div>{_nav(site)}</div>
<div id="page-body" role="main">
<h2 class="topic-title"><a href="{escape(dress.path)}">{escape(text.title)}</a></h2>
<div class="action-bar"><a href="/reply">Post a reply</a> <span class="pagination">{len(out)} posts • Page 1 of 1</span></div>
{chr(10).join(out)}
</div>
<div id="page-footer" class="page-footer">{_related(site, dress)}<p>{escape(site.footer)}</p></div>
</div>
{_cookie(site)}
</body>
</html>
"""


def answers(site: Site, text: Text, dress: Dress) -> str:
    """A question-and-answer site: votes, answers, sidebar of linked questions."""
    dice = Dice("votes " + text.slug)
    out = []
    for number, (author, when, blocks) in enumerate(posts(text)):
        role = "answer" if number else "question"
        out.append(
            f'<div class="{role}" id="{role}-{number}"><div class="votecell"><button>Up</button>'
            f'<span class="vote-count">{dice.between(0, 90)}</span><button>Down</button></div>'
            f'<div class="{role}cell"><div class="s-prose js-post-body" itemprop="text">'
            f"{blocks_html(blocks, dress.math, dress.code)}</div>"
            f'<div class="user-info">{when} <a href="/users/{author}">{escape(author)}</a></div></div></div>'
        )
    return f"""<!DOCTYPE html>
<html itemscope itemtype="https://schema.org/QAPage" lang="{site.language}">
{_head(site, text, dress)}
<body class="question-page">
<header class="top-bar"><a href="/">{escape(site.name)}</a>{_nav(site)}</header>
<div class="container"><div id="content">
<div id="question-header"><h1 itemprop="name"><a href="{escape(dress.path)}" class="question-hyperlink">{escape(text.title)}</a></h1></div>
<div id="mainbar" role="main">
{out[0]}
<div id="answers"><div id="answers-header"><h2>{len(out) - 1} Answers</h2></div>
{chr(10).join(out[1:])}
</div></div>
<div id="sidebar" role="complementary">{_related(site, dress)}</div>
</div></div>
{_cookie(site)}
<footer id="footer" class="site-footer">{escape(site.footer)}</footer>
</body>
</html>
"""


def shop(site: Site, text: Text, dress: Dress) -> str:
    """A product page: price box, description, specification table, other customers' purchases."""
    price = text.fields.get("price", "19.90")
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body class="product-page">
<header><a class="logo" href="/">{escape(site.name)}</a>{_nav(site)}<form class="search"><input name="q"></form><a class="cart" href="/cart">Cart (0)</a></header>
<div class="breadcrumbs"><a href="/">Home</a> / <a href="/c/{text.topic}">{text.topic}</a></div>
<main class="product" itemscope itemtype="https://schema.org/Product">
<div class="gallery"><img src="/img/{text.slug}.jpg" alt="{escape(text.title)}"></div>
<h1 itemprop="name">{escape(text.title)}</h1>
<div class="buy-box"><span class="price">€ {price}</span><button class="add">Add to cart</button><p class="stock">In stock, delivered in 2-4 working days</p></div>
<div class="product-description" itemprop="description">
{_body(site, text, dress)}
</div>
</main>
<section class="also-bought">{_related(site, dress)}</section>
{_footer(site)}
{_cookie(site)}
</body>
</html>
"""


def listing_page(site: Site, title: str, cards: Sequence[tuple[str, str]], dress: Dress) -> str:
    """A category page: cards with a name and a price, filters, page numbers, no prose."""
    text = Text("listing", "listing", title, ())
    items = "\n".join(
        f'<div class="card"><a href="/p/{i}"><img src="/img/{i}.jpg" alt=""></a>'
        f'<h3><a href="/p/{i}">{escape(name)}</a></h3><span class="price">{price}</span>'
        "<button>Add to cart</button></div>"
        for i, (name, price) in enumerate(cards)
    )
    pages = " ".join(f'<a href="?page={i}">{i}</a>' for i in range(1, 9))
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
{_head(site, text, dress)}
<body class="category-page">
<header><a class="logo" href="/">{escape(site.name)}</a>{_nav(site)}</header>
<h1>{escape(title)}</h1>
<div class="filters"><a href="?sort=price">Price</a> <a href="?sort=new">New</a> <a href="?sort=top">Top rated</a></div>
<div class="grid">
{items}
</div>
<div class="pager">{pages}</div>
{_footer(site)}
</body>
</html>
"""


TEMPLATES: dict[str, Callable[[Site, Text, Dress], str]] = {
    "news": news,
    "blog": blog,
    "legacy": legacy,
    "docs": docs,
    "wiki": wiki,
    "divs": divs,
    "minimal": minimal,
    "forum": forum,
    "answers": answers,
    "shop": shop,
}
