"""What is directly in an article: its end stays, and of what is inside it only its own."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import NamedTuple

import pytest

from curation.extract import extract


class Words(NamedTuple):
    """What one language says: sentences of an article, and what editors put between them."""

    story: tuple[str, ...]
    heads: tuple[str, ...]  # of other articles
    leads: tuple[str, ...]  # their first sentences
    more: str
    also: str
    news: tuple[str, str, str, str]  # a newsletter: name, praise, consent, button
    other: tuple[str, str, str]  # what another provider shows: label, notice, consent
    author: tuple[str, str]
    editions: str  # what introduces a list of links that is text
    names: tuple[str, ...]


WORDS = {
    "en": Words(
        story=(
            "The ferry to the outer islands left a little before six on Monday morning.",
            "On board were nine passengers, two vans with bread and a crate of young hens.",
            "The captain had decided against waiting for the mail, because the wind was rising.",
            "Two hours later the harbour office lost contact and asked the coast guard for help.",
            "Fishermen found the boat drifting near the lighthouse, with its engine flooded.",
            "Nobody was hurt, although several people had spent the night under one blanket.",
            "The company has promised to replace the radio and to publish its report in May.",
        ),
        heads=(
            "Harbour rebuilt after the winter storms",
            "Council votes on the new ferry timetable tonight",
            "Why fishing crews are leaving the north coast",
        ),
        leads=(
            "The quay was closed for three months while divers repaired the wall.",
            "Members are split over the early boat, which carries most of the pupils.",
            "Quotas, fuel and a shortage of young hands drive the boats south.",
        ),
        more="Read more:",
        also="Related articles",
        news=(
            "The morning post",
            "Our newsletter brings you the most important stories of the day.",
            "I agree to receive the newsletter and have read the privacy policy.",
            "Subscribe",
        ),
        other=(
            "External content",
            "Here you will find a video from another provider that complements the article.",
            "I agree that external content is shown to me. Data may be sent to other providers.",
        ),
        author=("By Martha Quill", "Martha Quill writes about harbours and their people."),
        editions="The guide to the islands is printed in these editions:",
        names=("Icelandic", "Norwegian", "Faroese", "Greenlandic"),
    ),
    "de": Words(
        story=(
            "Die Fähre zu den äußeren Inseln legte am Montag kurz vor sechs Uhr ab.",
            "An Bord waren neun Fahrgäste, zwei Lieferwagen mit Brot und eine Kiste junger Hühner.",
            "Der Kapitän wollte nicht auf die Post warten, weil der Wind zunahm.",
            "Zwei Stunden später verlor das Hafenamt den Kontakt und rief die Küstenwache.",
            "Fischer fanden das Schiff mit gefluteter Maschine in der Nähe des Leuchtturms.",
            "Niemand wurde verletzt, obwohl sich einige die Nacht über eine Decke teilen mussten.",
            "Die Reederei will das Funkgerät ersetzen und ihren Bericht im Mai vorlegen.",
        ),
        heads=(
            "Hafen nach den Winterstürmen wieder aufgebaut",
            "Gemeinderat stimmt heute über den Fahrplan ab",
            "Warum die Fischer den Norden verlassen",
        ),
        leads=(
            "Drei Monate war der Kai gesperrt, während Taucher die Mauer ausbesserten.",
            "Die Räte streiten über das frühe Schiff, mit dem die meisten Schüler fahren.",
            "Quoten, Treibstoff und fehlender Nachwuchs treiben die Boote nach Süden.",
        ),
        more="Lesen Sie auch:",
        also="Mehr zum Thema",
        news=(
            "Die Morgenpost",
            "Unser Newsletter bringt Ihnen die wichtigsten Nachrichten des Tages.",
            "Mit meiner Anmeldung stimme ich der Werbevereinbarung zu.",
            "Anmelden",
        ),
        other=(
            "Empfohlener externer Inhalt",
            "Hier finden Sie ein Video eines anderen Anbieters, das den Artikel ergänzt.",
            "Ich bin damit einverstanden, dass mir externe Inhalte angezeigt werden.",
        ),
        author=("Von Martha Quill", "Martha Quill schreibt über Häfen und ihre Bewohner."),
        editions="Das Heft über die Inseln ist in diesen Sprachen erhältlich:",
        names=("Deutsch", "Türkisch", "Arabisch", "Ukrainisch"),
    ),
    "ru": Words(
        story=(
            "Паром на дальние острова отошёл в понедельник незадолго до шести утра.",
            "На борту было девять пассажиров, два фургона с хлебом и ящик молодых кур.",
            "Капитан решил не ждать почту, потому что поднимался ветер.",
            "Через два часа портовая служба потеряла связь и вызвала береговую охрану.",
            "Рыбаки нашли судно с залитым двигателем недалеко от маяка.",
            "Никто не пострадал, хотя нескольким людям пришлось ночевать под одним одеялом.",
            "Компания обещает заменить радиостанцию и показать отчёт в мае.",
        ),
        heads=(
            "Порт восстановлен после зимних штормов",
            "Депутаты голосуют сегодня за новое расписание паромов",
            "Почему рыбаки уходят с северного берега",
        ),
        leads=(
            "Причал был закрыт три месяца, пока водолазы чинили стену.",
            "Депутаты спорят об утреннем пароме, на котором ездят школьники.",
            "Квоты, топливо и нехватка молодых рук гонят лодки на юг.",
        ),
        more="Читайте также:",
        also="Материалы по теме",
        news=(
            "Утренняя почта",
            "Наша рассылка приносит самые важные новости дня.",
            "Подписываясь, я соглашаюсь с условиями и политикой конфиденциальности.",
            "Подписаться",
        ),
        other=(
            "Внешние материалы",
            "Здесь находится видео другого поставщика, которое дополняет статью.",
            "Я согласен с показом внешних материалов. Данные могут быть переданы другим.",
        ),
        author=("Автор: Марта Квилл", "Марта Квилл пишет о портах и людях, которые живут у моря."),
        editions="Справочник по островам издан на следующих языках:",
        names=("исландский", "норвежский", "фарерский", "датский"),
    ),
    "zh": Words(
        story=(
            "开往外岛的渡船星期一早上六点之前就离开了港口，码头上还没有亮灯。",
            "船上有九名乘客、两辆运面包的货车，还有一箱准备送到岛上的小母鸡。",
            "船长看见风越来越大，决定不再等待邮件，提前十分钟解开了缆绳。",
            "两个小时以后，港务处同渡船失去联系，只好请求海岸警卫队前去寻找。",
            "渔民在灯塔附近发现了漂流的渡船，机舱已经进水，发动机无法启动。",
            "没有人受伤，不过有几位乘客整夜只能合用一条毯子取暖，等到天亮。",
            "轮船公司答应更换船上的无线电设备，并在五月公布这次事故的调查报告。",
        ),
        heads=(
            "冬季风暴过后港口重建工作已经全部完成",
            "议会今晚就新的渡轮时刻表进行表决",
            "渔民为什么离开北部海岸",
        ),
        leads=(
            "码头关闭了三个月，潜水员在此期间修复了墙体。",
            "议员们对早班船意见不一，大多数学生乘坐这班船。",
            "配额、燃料和缺少年轻人手把渔船推向南方。",
        ),
        more="相关阅读：",
        also="延伸阅读",
        news=(
            "早间邮报",
            "我们的通讯为您带来当天最重要的新闻。",
            "我同意接收通讯，并已阅读隐私政策。",
            "订阅",
        ),
        other=(
            "外部内容",
            "这里有另一家供应商的视频，作为文章的补充。",
            "我同意向我显示外部内容。个人数据可能会传输给其他供应商。",
        ),
        author=("作者：马莎", "马莎撰写关于港口和海边居民的文章。"),
        editions="这本群岛指南目前有以下几种语言的版本：",
        names=("冰岛语", "挪威语", "法罗语", "格陵兰语"),
    ),
}  # fmt: skip
LANGUAGES = tuple(WORDS)
CHROME = (
    """<header class="site-header"><nav><ul><li><a href="/">Home</a></li>
<li><a href="/n">News</a></li></ul></nav></header><main>""",
    """</main><aside class="sidebar"><h3>Popular</h3><ul><li>
<a href="/1">One thing happened here</a>
</li><li><a href="/2">Another thing happened there</a></li></ul></aside><footer class="footer">
<p>&copy; 2024 Example Media. All rights reserved.</p></footer>""",
)


def paragraphs(language: str, count: int = 8) -> list[str]:
    """Paragraphs of three sentences, no two alike."""
    story = WORDS[language].story
    blank = "" if language == "zh" else " "
    return [blank.join(story[(k * step) % 7] for k in (n, n + 1, n + 2)) for n, step in
            zip(range(count), (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6), strict=False)]  # fmt: skip


def page(language: str, body: str, chrome: bool = True) -> str:
    title = escape(WORDS[language].story[0][:30])
    before, after = CHROME if chrome else ("", "")
    return (
        f"<!DOCTYPE html><html lang={language}><meta charset=utf-8><title>{title}</title>"
        f"<body>{before}<article><h1>{title}</h1>{body}</article>{after}</body></html>"
    )


def told(paragraphs_of: list[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in paragraphs_of)


def squeezed(text: str) -> str:
    return re.sub(r"\W+", "", text)


def missing(html: str, wanted: list[str]) -> list[str]:
    """Those of the texts that an extraction lacks."""
    text = squeezed(extract(html).text)
    return [one for one in wanted if squeezed(one) not in text]


def texts_of(fragment: str) -> list[str]:
    found = (unescape(text).strip() for text in re.split(r"<[^>]*>", fragment))
    return [text for text in found if text]


ENDS = {
    "paragraphs": "<p>{0}</p><p>{1}</p>",
    "loose": "{0}<br><br>{1}",
    "loose, in one": "{0} {1}",
    "lines of a div": "<div>{0}<br><br>{1}</div>",
    "div": "<div><p>{0}</p><p>{1}</p></div>",
    "divs": "<div>{0}</div><div>{1}</div>",
    "spans": "<div><span>{0}</span></div><div><span>{1}</span></div>",
    "named divs": '<div class="txt-b1">{0}</div><div class="txt-b2">{1}</div>',
    "named texts": '<div class="text-block"><div class="inner">{0}</div></div>'
    '<div class="text-block"><div class="inner">{1}</div></div>',
    "behind a label": '<div class="ad">{word}</div><div><p>{0}</p></div><div><p>{1}</p></div>',
    "quotation": "<blockquote><p>{0}</p><p>{1}</p></blockquote>",
    "quotations": "<blockquote>{0}</blockquote><blockquote>{1}</blockquote>",
    "section": "<section><p>{0}</p><p>{1}</p></section>",
    "box": '<div class="box"><p>{0}</p><p>{1}</p></div>',
    "headed box": '<section class="box"><h2>{0:.24}</h2><p>{0}</p><p>{1}</p></section>',
    "boxes": '<div class="box"><p>{0}</p></div><div class="box"><p>{1}</p></div>',
    "headed section": "<section><h2>{word}</h2><p>{0}</p><p>{1}</p></section>",
    "folded": "<details><summary>{word}</summary><p>{0}</p><p>{1}</p></details>",
    "list": "<ul><li>{0}</li><li>{1}</li></ul>",
    "numbered list": "<ol><li>{0}</li><li>{1}</li></ol>",
    "definitions": "<dl><dt>{word}</dt><dd>{0}</dd><dt>{word}</dt><dd>{1}</dd></dl>",
    "table": "<table><tr><td>{0}</td></tr><tr><td>{1}</td></tr></table>",
    "footer": "<footer><p>{0}</p><p>{1}</p></footer>",
    "last in a footer": "<p>{0}</p><footer>{1}</footer>",
    "named footer": '<div class="content-bottom">{0}</div><div class="content-footer">{1}</div>',
    "caption without a picture": "<figure><figcaption>{0}</figcaption></figure><p>{1}</p>",
    "last in a caption": "<p>{0}</p><figure><figcaption>{1}</figcaption></figure>",
    "field set": "<fieldset><legend>{0:.24}</legend>{0}</fieldset><p>{1}</p>",
    "form without a field": "<form><p>{0}</p><p>{1}</p></form>",
    "aside": "<aside><p>{0}</p><p>{1}</p></aside>",
    "aside with a link": '<aside><p>{0}</p><p>{1} <a href="/x">{word}</a></p></aside>',
    "without scripts": "<noscript><p>{0}</p><p>{1}</p></noscript>",
    "last in an aside": "<p>{0}</p><aside>{1}</aside>",
    "navigation": "<nav><p>{0}</p><p>{1}</p></nav>",
    "address": "<address>{0}</address><p>{1}</p>",
    "second main": "<main><p>{0}</p></main><p>{1}</p>",
    "header": "<header>{0}</header><p>{1}</p>",
    "centred": "<center>{0}</center><center>{1}</center>",
    "panels": '<div class="panel"><h3 class="panel-heading">{0:.24}</h3><div class="panel-body">{0}'
    '</div></div><div class="panel"><div class="panel-body">{1}</div></div>',
    "accordion": '<div class="accordion-item"><h2><button aria-expanded="false">{0:.24}</button>'
    '</h2><div class="collapse"><p>{0}</p></div></div><div class="accordion-item"><h2><button '
    'aria-expanded="false">{1:.24}</button></h2><div class="collapse"><p>{1}</p></div></div>',
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ENDS.values(), ids=ENDS)
def test_an_article_keeps_its_end_whatever_holds_it(form: str, language: str) -> None:
    for count in (4, 6, 8, 10):
        texts = paragraphs(language, count + 2)
        end = form.format(*map(escape, texts[-2:]), word=escape(WORDS[language].names[0]))
        for chrome in (True, False):
            html = page(language, told(texts[:-2]) + end, chrome)
            assert missing(html, texts) == []
        # And where nothing but the body holds it.
        assert missing(re.sub("</?article>", "", html), texts) == []


THAI = (
    "เรือข้ามฟากไปเกาะรอบนอกออกจากท่าก่อนหกโมงเช้าวันจันทร์เล็กน้อยโดยที่ไฟบนสะพานปลายังไม่เปิด",
    "บนเรือมีผู้โดยสารเก้าคน รถตู้ส่งขนมปังสองคัน และลังใส่ลูกไก่ที่จะนำไปส่งให้ชาวบ้านบนเกาะ",
    "กัปตันเห็นว่าลมแรงขึ้นเรื่อย ๆ จึงไม่รอถุงไปรษณีย์ และปลดเชือกก่อนเวลาถึงสิบนาที",
    "สองชั่วโมงต่อมาสำนักงานท่าเรือขาดการติดต่อกับเรือ จึงขอให้หน่วยยามฝั่งออกไปค้นหา",
    "ชาวประมงพบเรือลอยอยู่ใกล้ประภาคาร น้ำเข้าห้องเครื่อง และเครื่องยนต์ติดไม่ได้อีกแล้ว",
)


@pytest.mark.parametrize(
    "form", ["box", "footer", "aside", "last in an aside", "header", "address"]
)
def test_an_article_whose_sentences_end_in_no_sign_keeps_its_end(form: str) -> None:
    texts = [f"{THAI[k % 5]} {THAI[k * 2 % 5]}" for k in range(8)]
    end = ENDS[form].format(*texts[-2:])
    html = page("en", told(texts[:-2]) + end).replace("lang=en", "lang=th")
    assert missing(html, texts) == []


@pytest.mark.parametrize("hides", ["hidden", 'style="display:none"', 'class="sr-only"'])
def test_what_is_hidden_in_a_told_part_stays_out(hides: str) -> None:
    *texts, last = paragraphs("en")
    part = f"<aside><h2 {hides}>Concealed heading</h2><p>{last}</p></aside>"
    for at in (4, len(texts)):
        text = extract(page("en", told(texts[:at]) + part + told(texts[at:]))).text
        assert last in text
        assert "Concealed" not in text


def link(text: str, at: int = 1) -> str:
    return f'<a href="/2024/05/{at}">{escape(text)}</a>'


def between(language: str, fragment: str, places: tuple[int, ...] = (3, 6)) -> str:
    parts = [
        f"<p>{escape(text)}</p>" + (fragment if k in places else "")
        for k, text in enumerate(paragraphs(language), 1)
    ]
    return page(language, f'<div class="article-body">{"".join(parts)}</div>')


OTHERS = {
    "link in a div": lambda w: f'<div class="c-x17">{link(w.heads[0])}</div>',
    "labelled link": lambda w: f'<div class="read-also"><b>{w.more}</b> {link(w.heads[0])}</div>',
    "embedded": lambda w: '<figure class="wp-block-embed"><div class="wp-block-embed__wrapper">'
    f'<blockquote class="wp-embedded-content">{link(w.heads[0])}</blockquote></div></figure>',
    "headlines below a label": lambda w: f"<p>{w.more}</p><ul>"
    + "".join(f"<li>{link(head, k)}</li>" for k, head in enumerate(w.heads))
    + "</ul>",
    "headlines below a heading": lambda w: f"<h3>{w.also}</h3><ul>"
    + "".join(f"<li>{link(head, k)}</li>" for k, head in enumerate(w.heads))
    + "</ul>",
    "teaser": lambda w: '<div class="teaser"><a href="/x"><img src="a.jpg"><span class="kicker">'
    f"{w.also}</span><h3>{w.heads[0]}</h3><p>{w.leads[0]}</p></a></div>",
    "teaser beside": lambda w: f"<aside><h3>{link(w.heads[0])}</h3><p>{w.leads[0]}</p></aside>",
    "cards": lambda w: '<div class="related-cards">'
    + "".join(f'<article class="card"><h4>{link(head)}</h4><p>{lead}</p></article>'
              for head, lead in zip(w.heads, w.leads, strict=True))
    + "</div>",
    "unnamed cards": lambda w: '<div class="b7">'
    + "".join(f'<div class="b7i"><a href="/{k}"><h4>{head}</h4><p>{lead}</p></a></div>'
              for k, (head, lead) in enumerate(zip(w.heads, w.leads, strict=True)))
    + "</div>",
    "newsletter": lambda w: f'<div class="newsletter-box"><h3>{w.news[0]}</h3><p>{w.news[1]}'
    f"</p><form><input type=email><label><input type=checkbox> {w.news[2]}</label></form></div>",
    "unnamed newsletter": lambda w: f'<div class="q-box"><strong>{w.news[0]}</strong><p>'
    f"{w.news[1]}</p><form><input name=mail></form><p>{w.news[2]}</p></div>",
    "form": lambda w: f'<form class="f1"><p>{w.news[1]}</p><input name=mail>'
    f"<p>{w.news[2]}</p></form>",
    "consent": lambda w: f'<div class="opt-in"><p><b>{w.other[0]}</b></p><p>{w.other[1]}</p>'
    f"<label><input type=checkbox> {w.other[2]}</label></div>",
    "consent in a figure": lambda w: '<figure class="embed"><div class="embed__consent">'
    f"<h4>{w.other[0]}</h4><p>{w.other[1]}</p><p>{w.other[2]}</p></div></figure>",
    "author": lambda w: f'<div class="author-box"><a href="/a">{w.author[0]}</a>'
    f"<p>{w.author[1]}</p></div>",
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", OTHERS.values(), ids=OTHERS)
def test_what_is_none_of_the_article_goes_from_between_its_paragraphs(
    form: object, language: str
) -> None:
    assert callable(form)
    fragment = form(WORDS[language])
    html = between(language, fragment)
    assert missing(html, paragraphs(language)) == []
    assert missing(html, texts_of(fragment)) == texts_of(fragment)


@pytest.mark.parametrize("language", LANGUAGES)
def test_captions_of_pictures_are_judged_by_the_model(language: str) -> None:
    words = WORDS[language]
    picture = f'<figure><img src="a.jpg"><figcaption>{" ".join(words.other)}</figcaption></figure>'
    assert missing(between(language, picture), texts_of(picture)) == texts_of(picture)


@pytest.mark.parametrize("arrow", ["&gt;&gt; ", "→ ", "» ", "– ", ""])
def test_a_headline_behind_an_arrow_goes_from_an_article(arrow: str) -> None:
    texts = [" ".join(paragraphs("en", 12)[k : k + 3]) for k in (0, 3, 6, 9)]
    teaser = f"<p>{arrow}{link(WORDS['en'].heads[0])}</p>"
    html = page("en", told(texts[:2]) + teaser + told(texts[2:]))
    assert missing(html, [*texts, WORDS["en"].heads[0]]) == [WORDS["en"].heads[0]]


OWN = {
    "div": "<div>{0}</div>",
    "divs": "<div><p>{0}</p><p>{1}</p></div>",
    "section": "<section><h2>{head}</h2><p>{0}</p></section>",
    "quotation": "<blockquote><p>{0}</p></blockquote>",
    "pulled quotation": '<div class="pullquote"><p>{lead}</p></div>',
    "folded": "<details><summary>{head}</summary><p>{0}</p></details>",
    "heading that is a div": '<div class="crosshead">{head}</div><p>{0}</p>',
    "short paragraph": "<p>{lead}</p><p>{0}</p>",
    "dialogue": "<p>– {lead}</p><p>– {lead}</p>",
    "list": "<ul><li>{lead}</li><li>{head}</li></ul>",
    "numbered list": "<ol><li>{head}</li><li>{lead}</li></ol>",
    "table": "<table><tr><th>A</th><th>B</th></tr><tr><td>{head}</td><td>12</td></tr>"
    "<tr><td>{lead}</td><td>14</td></tr></table>",
    "link inside": '<p>{lead} <a href="/x">{head}</a>. {0}</p>',
    "link inside a div": '<div>{0} <a href="/x">{head}</a>.</div>',
    "listing": "<pre>x = 1\nprint(x)</pre>",
    "box": '<div class="infobox"><h3>{head}</h3><p>{0}</p></div>',
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", OWN.values(), ids=OWN)
def test_what_is_the_articles_own_stays_between_its_paragraphs(form: str, language: str) -> None:
    words, texts = WORDS[language], paragraphs(language, 10)
    fragment = form.format(*texts[8:], head=words.heads[0], lead=words.leads[0])
    assert missing(between(language, fragment, (4,)), [*texts[:8], *texts_of(fragment)]) == []


LISTS = {
    "list": "<p>{intro}</p><ul>{items}</ul>",
    "numbered": "<p>{intro}</p><ol>{items}</ol>",
    "named": '<div>{intro}</div><ul class="editions">{items}</ul>',
    "strong": "<p><strong>{intro}</strong></p><ul>{items}</ul>",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", LISTS.values(), ids=LISTS)
def test_links_that_complete_a_sentence_stay_all_of_them(form: str, language: str) -> None:
    words = WORDS[language]
    for count in (2, 3, 4):
        items = "".join(f"<li>{link(name, k)}</li>" for k, name in enumerate(words.names[:count]))
        fragment = form.format(intro=words.editions, items=items)
        html = between(language, fragment, (4,))
        assert missing(html, [*paragraphs(language), *texts_of(fragment)]) == []


HIDDEN = (
    '<div class="visually-hidden">@</div>',
    '<div class="sr-only">@</div>',
    '<p class="screen-reader-text">@</p>',
    '<span class="visually-hidden">@</span>',
    '<h2 class="element-invisible">@</h2>',
    '<div style="position:absolute;clip:rect(0 0 0 0)">@</div>',
    '<span style="clip: rect(1px, 1px, 1px, 1px)">@</span>',
    '<div style="clip-path: inset(50%); height:2px">@</div>',
    '<p style="position:absolute;width:1px;height:1px;overflow:hidden">@</p>',
    '<div style="position:absolute; left:-9999px">@</div>',
    '<div aria-hidden="true">@</div>',
    '<div class="x7">@</div>',
    '<p class="k1">@</p>',
    "<p>@</p>",
)
LABELS = {"en": "Article content", "de": "Artikelinhalt", "ru": "Текст статьи", "zh": "文章内容"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", HIDDEN)
def test_a_label_that_repeats_between_paragraphs_goes(form: str, language: str) -> None:
    label, texts = LABELS[language], paragraphs(language)
    html = page(language, "".join(form.replace("@", label) + told([text]) for text in texts))
    assert missing(html, texts) == []
    assert label not in extract(html).text


def test_what_a_speaker_says_again_is_no_label() -> None:
    texts = paragraphs("en")
    answers = "".join(told([text]) + "<p>“No,” she said.</p>" for text in texts)
    assert extract(page("en", answers)).text.count("“No,” she said.") == len(texts)
