"""Tables of data and tables of layout."""

from __future__ import annotations

import numpy as np

from curation.extract.assemble import assemble
from curation.extract.layout import laid_out
from curation.extract.scan import scan
from curation.extract.tables import tables_of, whole_tables


def shared(html: str, probabilities: list[float], share: float = 0.0) -> list[float]:
    page = scan(html.encode(), 512, 10_000)
    assert len(page.b_start) == len(probabilities)
    linked = page.b_link_chars > 0
    tables = tables_of(page)
    found = whole_tables(
        np.array(probabilities),
        tables.data,
        tables.table,
        linked,
        share,
        page.b_element,
        page.e_tag,
    )
    return [round(float(value), 6) for value in found]


def rows(*cells: str) -> str:
    return "".join(f"<tr>{row}</tr>" for row in cells)


def test_cells_of_a_data_row_share_the_highest_probability() -> None:
    row = "<td>name<td>1"
    table = f"<table>{rows(row, row, row)}</table>"
    assert shared(f"<p>text</p>{table}", [0.9, 0.6, 0.1, 0.2, 0.3, 0.1, 0.7]) == [
        0.9, 0.6, 0.6, 0.3, 0.3, 0.7, 0.7
    ]  # fmt: skip


def test_a_table_follows_the_text_before_it_but_for_links() -> None:
    row = "<td>width<td>1"
    table = f"<table>{rows(row, row, '<td><a href=x>more</a><td><a href=y>all</a>')}</table>"
    found = shared(f"<p>text</p><p>and</p>{table}", [0.9, 0.2, *[0.1] * 6], share=0.5)
    assert found == [0.9, 0.2, 0.45, 0.45, 0.45, 0.45, 0.1, 0.1]


def test_layouts_are_left_alone() -> None:
    two_rows = f"<table>{rows('<td>name<td>1', '<td>name<td>2')}</table>"
    assert shared(two_rows, [0.9, 0.1, 0.9, 0.1]) == [0.9, 0.1, 0.9, 0.1]
    uneven = f"<table>{rows('<td>a<td>b', '<td>c', '<td>d', '<td>e<td>f')}</table>"
    given = [0.9, 0.1, 0.5, 0.5, 0.9, 0.1]
    assert shared(uneven, given) == given
    long = (
        f"<table>{rows('<td>name<td>1', '<td>name<td>2', '<td>' + 'word ' * 100 + '<td>3')}</table>"
    )
    given = [0.9, 0.1, 0.9, 0.1, 0.9, 0.1]
    assert shared(long, given) == given


def test_rows_of_a_table_inside_a_cell_are_its_own() -> None:
    inner = f"<table>{rows('<td>x')}</table>"
    page = scan(f"<table>{rows(f'<td>a{inner}')}</table>".encode(), 512, 10_000)
    row, cell, table, *_ = tables_of(page)
    outer_block, inner_block = page.b_element
    assert row[outer_block] != row[inner_block]
    assert cell[outer_block] != cell[inner_block]
    assert table[outer_block] != table[inner_block]
    assert row[inner_block] > row[outer_block] >= 0


def test_a_caption_is_judged_with_its_table() -> None:
    row = "<td>name<td>1"
    table = f"<table><caption>Names</caption>{rows(row, row, row)}</table>"
    assert shared(table, [0.1, 0.6, 0.1, 0.2, 0.3, 0.8, 0.1])[0] == 0.8
    assert shared(f"<table><caption>One</caption>{rows(row)}</table>", [0.1, 0.6, 0.1])[0] == 0.1


def test_empty_cells_keep_their_places_in_tables_of_data() -> None:
    def text(table: str) -> str:
        page = scan(f"<table>{table}</table>".encode(), 512, 1000)
        blocks = len(page.b_start)
        layout = laid_out(page, tables_of(page), np.ones(blocks, np.bool_), np.zeros(blocks))
        return assemble(b"", page, layout).text

    table = rows("<td>up to 75<td>130<td><td>30", "<td>76<td>1<td>2<td>3", "<td><td>4<td>5<td>")
    assert text(table) == "up to 75 | 130 | | 30\n76 | 1 | 2 | 3\n| 4 | 5"
    assert text("<tr><td><td>menu<td>text") == "menu | text"
