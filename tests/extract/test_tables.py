"""Tables of data and tables of layout."""

from __future__ import annotations

import numpy as np

from curation.extract.scan import scan
from curation.extract.tables import rows_and_cells, whole_tables


def shared(html: str, probabilities: list[float], share: float = 0.0) -> list[float]:
    page = scan(html.encode(), 512, 10_000)
    assert len(page.b_start) == len(probabilities)
    linked = page.b_link_chars > 0
    found = whole_tables(np.array(probabilities), page, linked, share)
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
    row, cell, table = rows_and_cells(page.e_parent, page.e_tag)
    outer_block, inner_block = page.b_element
    assert row[outer_block] != row[inner_block]
    assert cell[outer_block] != cell[inner_block]
    assert table[outer_block] != table[inner_block]
    assert row[inner_block] > row[outer_block] >= 0
