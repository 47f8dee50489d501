"""What HTML markup means to the scanner: elements, attributes, entities and telling class names.

Everything is turned into flat tables once at import, because the scanner is compiled and reads
nothing but arrays. Names of tags and attributes are found by `name_hash` of their lower-case bytes,
other words by the 64-bit FNV-1a hash.
"""

import html.entities

import numpy as np

from curation.bytes.hash_tables import of_hashes

FNV_START = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
_MASK = (1 << 64) - 1


def fnv(name: bytes) -> int:
    """64-bit FNV-1a hash of bytes."""
    value = int(FNV_START)
    for byte in name:
        value = ((value ^ byte) * int(FNV_PRIME)) & _MASK
    return value


SHORT_NAME = 7  # bytes of a name that are hashed as one number


def name_hash(name: bytes) -> int:
    """Hash of the name of a tag or an attribute: in one step where it is short, as most are."""
    if len(name) > SHORT_NAME or 0 in name:
        return fnv(name)
    value = (int.from_bytes(name, "little") * int(FNV_PRIME)) & _MASK
    return value ^ (value >> 32)


# Elements that end the run of text around them, in an order that models may rely on: append only.
BLOCKS = """
body p div li h1 h2 h3 h4 h5 h6 td th dd dt blockquote pre figcaption caption article section main
aside nav header footer form ul ol dl table tr tbody thead tfoot figure details summary fieldset
legend address center hgroup menu dialog dir listing search frameset html hr xmp button noscript
""".split()
# Elements whose content is no text of the page: passed over up to their end tag.
SKIPPED = """
svg iframe template canvas audio video select datalist map noframes noembed script style
textarea title
""".split()
# Elements within a run of text that the scanner looks at.
INLINE = (
    "a b strong code img br wbr math input label em i span q tt kbd samp object "
    "sup del s strike ruby rt rp sub var rb"
).split()

TAG = {name: index for index, name in enumerate(BLOCKS + SKIPPED + INLINE)}
OTHER = len(TAG)
LAST_BLOCK = len(BLOCKS) - 1
LAST_SKIPPED = LAST_BLOCK + len(SKIPPED)
TAG_KEYS, TAG_VALUES = of_hashes({name_hash(name.encode()): index for name, index in TAG.items()})

# Attributes that the scanner looks at.
ATTRIBUTES = """
class id role itemprop hidden style aria-hidden href alt src type encoding alttext data-mathml
property name content itemtype readonly data-line face shadowrootmode aria-expanded
""".split()
ATTRIBUTE = {name: index for index, name in enumerate(ATTRIBUTES)}
AT_LANGUAGE = len(ATTRIBUTE)
ATTRIBUTE_KEYS, ATTRIBUTE_VALUES = of_hashes(
    {name_hash(name.encode()): index for name, index in ATTRIBUTE.items()}
    | {name_hash(name): AT_LANGUAGE for name in (b"lang", b"xml:lang")}
)

# What an element is inside of: one bit each, inherited by everything below it.
_ANCESTORS = {
    "p": "p",
    "heading": "h1 h2 h3 h4 h5 h6",
    "item": "li dd dt",
    "list": "ul ol dl menu dir",
    "cell": "td th",
    "table": "table",
    "nav": "nav",
    "aside": "aside",
    "header": "header",
    "footer": "footer",
    "form": "form fieldset",
    "article": "article",
    "main": "main",
    "section": "section",
    "figure": "figure figcaption",
    "quote": "blockquote",
    "code": "pre listing xmp",
    "button": "button",
    "details": "details summary",
    "dialog": "dialog",
    "noscript": "noscript",
    # These two follow from attributes and class names.
    "hidden": "",
    "gutter": "",
}
ANCESTOR = {name: 1 << index for index, name in enumerate(_ANCESTORS)}
ANCESTOR_OF_TAG = np.zeros(OTHER + 1, np.int64)
for _name, _tags in _ANCESTORS.items():
    for _tag in _tags.split():
        ANCESTOR_OF_TAG[TAG[_tag]] |= ANCESTOR[_name]

# Roles and item properties, of which an element gets one bit each; children inherit them.
FLAG_MAIN, FLAG_SIDE, FLAG_BODY, FLAG_PROPERTY, FLAG_PANEL = 1, 2, 4, 8, 16
# It has `aria-expanded`; a field of a form, a picture is directly in it. No feature of the models reads these.
FLAG_UNFOLDS, FLAG_ASKS, FLAG_SHOWS = 32, 64, 128
_FLAGS = {
    FLAG_MAIN: "main article",
    FLAG_SIDE: "navigation complementary banner contentinfo search dialog menu tablist listbox menubar toolbar",
    FLAG_PANEL: "tabpanel region",
    FLAG_BODY: "articlebody text description mainentity reviewbody acceptedanswer suggestedanswer",
}
VALUE_FLAGS = of_hashes(
    {fnv(word.encode()): flag for flag, words in _FLAGS.items() for word in words.split()}
)

# Whole class names that say what an element is, whatever the page is about (from the documentation
# of the highlighters and renderers named).
MARK_GUTTER, MARK_COPY, MARK_RENDERED, MARK_CODE, MARK_SCREEN_READER, MARK_FORMULA = range(1, 7)
MARK_CODE_CELL, MARK_LINE, MARK_NUMBERS, MARK_SHOWN, MARK_FRAGMENT, MARK_NOTE = range(7, 13)
MARK_NAMED_CODE = 13
_MARKS = {
    # line numbers: Pygments, Rouge, highlight.js, Prism, SyntaxHighlighter, Crayon, GitHub, GitLab,
    # CodeMirror, Expressive Code, react-syntax-highlighter, Ace, Gist, Gitea
    MARK_GUTTER: """lineno linenos linenodiv line-number line-numbers line-numbers-rows
        linenumber linenumbers gutter hljs-ln-numbers hljs-ln-n rouge-gutter blob-num crayon-nums
        crayon-num codemirror-linenumber codemirror-gutter codemirror-gutters
        codemirror-gutter-wrapper cm-gutters react-syntax-highlighter-line-number
        react-code-line-number ace_gutter ace_gutter-cell diff-line-num line_numbers
        js-line-number code-line-number linenum ln-num lnt ln ec-line-number lines-num linenr""",
    # the same where the name is never that of the listing itself: CSDN, rustdoc, GitHub, LaTeXML;
    # and the prompts that notebooks number (`In [3]:`), marks of notes that stand in the text, and
    # MediaWiki's links to edit a section
    MARK_NUMBERS: """pre-numbering src-line-numbers react-line-numbers react-line-number
        ltx_tag_listingline jp-inputprompt jp-outputprompt input_prompt output_prompt
        ltx_note_mark ltx_tag_note mw-editsection""",
    MARK_COPY: """copy copy-btn btn-copy copy-button copybtn clipboard-copy code-copy copy-code
        copy-code-button button-copy toolbar-item clipboard zeroclipboard-container copytoclipboard
        code-copy-button copy-to-clipboard-button snippet-clipboard crayon-toolbar
        hljs-button code-toolbar-copy codehilite-copy""",
    # what MathJax and KaTeX draw; the formula itself is next to it
    MARK_RENDERED: """mathjax mathjax_display mathjax_preview mathjax_svg mathjax_svg_display
        mathjax_chtml mathjax_mathml mjx-chtml mjxc-display mjxp-display katex-html""",
    MARK_CODE: """syntaxhighlighter blob-code blob-code-inner crayon-pre codemirror-code
        codemirror-lines react-code-lines cm-content dp-highlighter recodeblock view-lines
        ace_text-layer de1 de2""",  # the last two: lines of GeSHi
    # of a listing, in <pre>: Shiki, Prism, GitBook, Gatsby
    MARK_LINE: "line token-line code-line highlight-line gatsby-highlight-code-line",
    MARK_SHOWN: "react-code-file-contents enlighterjsraw",  # whatever its attributes say
    MARK_FRAGMENT: "fragment",  # of Doxygen, if lines follow
    MARK_CODE_CELL: "code blob-code-content lines-code",  # on table cells: the listing next to its gutter
    # notes in the middle of a sentence: LaTeXML, Tufte
    MARK_NOTE: "ltx_note_outer sidenote marginnote modern-footnotes-footnote__note",
    # Bootstrap, WordPress, HTML5 Boilerplate, Drupal, Bulma, Foundation, Angular, jQuery UI, GOV.UK
    MARK_SCREEN_READER: """sr-only visually-hidden screen-reader-text visuallyhidden screen-reader-only
        visually-hidden-focusable sr-only-focusable screen-reader screenreader-only screenreader
        element-invisible is-sr-only show-for-sr cdk-visually-hidden ui-helper-hidden-accessible
        govuk-visually-hidden u-visually-hidden u-hiddenvisually hidden-visually a11y-hidden
        assistive-text""",
    MARK_FORMULA: """tex latex math mwe-math-fallback-image-inline mwe-math-fallback-image-display
        latex-image formula equation mimetex wp-latex ql-img-inline-formula
        ql-img-displayed-equation mathtex texrender texhtml""",
}
MARKS = of_hashes(
    {fnv(word.encode()): mark for mark, words in _MARKS.items() for word in words.split()}
)

# Entities: name -> one or two code points. HTML allows some of them without the semicolon.
_ENTITIES = {name: value for name, value in html.entities.html5.items() if len(value) <= 2}
ENTITY_POINTS = np.zeros((len(_ENTITIES), 2), np.int64)
for _index, _value in enumerate(_ENTITIES.values()):
    ENTITY_POINTS[_index, : len(_value)] = [ord(character) for character in _value]
ENTITY_KEYS, ENTITY_VALUES = of_hashes(
    {fnv(name.encode()): index for index, name in enumerate(_ENTITIES)}
)
LONGEST_ENTITY = max(map(len, _ENTITIES))

# Numeric references to C1 controls mean windows-1252 (HTML standard, 13.2.5.80).
C1_POINTS = np.array(
    [
        ord(bytes([byte]).decode("cp1252")) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else byte
        for byte in range(128, 160)
    ],
    np.int64,
)

# Byte classes. PLAIN bytes stand for themselves in text: ASCII that is neither space nor markup. So
# do characters of TWO and THREE bytes that begin with such: all of them are text, none is white.
SPACE, LETTER, NAME_END, PLAIN, TWO, THREE = 1, 2, 4, 8, 16, 32
BYTES = np.zeros(256, np.uint8)
for _byte in b"\t\n\x0c\r ":
    BYTES[_byte] |= SPACE | NAME_END
for _byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
    BYTES[_byte] |= LETTER
for _byte in b"/>":
    BYTES[_byte] |= NAME_END
for _byte in range(33, 127):
    if _byte not in b"<&":
        BYTES[_byte] |= PLAIN
BYTES[0xC3:0xE0] |= TWO  # U+00C0 to U+07FF
for _byte in (0xE0, 0xE1, *range(0xE4, 0xED)):  # U+0800 to U+1FFF, U+4000 to U+CFFF
    BYTES[_byte] |= THREE
#: Case of the characters of two bytes or one: Latin, Greek, Cyrillic, Armenian.
SMALL, CAPITAL = 1, 2
CASE = np.array(
    [SMALL * chr(point).islower() + CAPITAL * chr(point).isupper() for point in range(0x590)],
    np.uint8,
)
