"""Hash tables that are filled at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.bytes.hash_tables import filled, find, of_hashes

_HASHES = st.lists(st.integers(0, 40) | st.integers(1 << 63, (1 << 64) - 1), max_size=40)


@given(_HASHES)
def test_every_entry_is_found_from_its_place_on(hashes: list[int]) -> None:
    slots = filled(64, np.array(hashes, np.uint64)).tolist()
    assert sorted(number for number in slots if number >= 0) == [*range(len(hashes))]
    for number, first in enumerate(hashes):
        probed = [slots[(first + k) % 64] for k in range(64)]
        before = probed[: probed.index(number)]
        assert -1 not in before  # where a search would end
        assert all(hashes[other] != first or other < number for other in before)


@given(_HASHES)
def test_hashes_have_their_values(hashes: list[int]) -> None:
    entries = {key: value for value, key in enumerate(hashes) if key}
    table = of_hashes(entries)
    assert len(table.keys) > 2 * len(entries)
    for key in [*entries, 99]:
        assert find(*table, np.uint64(key)) == entries.get(key, -1)
