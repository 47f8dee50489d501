"""Readers: any input file as pages, damage set aside, nothing lost that can be read."""

from curation.readers.charset import decode_html as decode_html
from curation.readers.charset import decode_text as decode_text
from curation.readers.discover import InputFile as InputFile
from curation.readers.discover import PassedOver as PassedOver
from curation.readers.discover import discover as discover
from curation.readers.ranges import Checkpoint as Checkpoint
from curation.readers.ranges import RangeReader as RangeReader
from curation.readers.ranges import Reading as Reading
from curation.readers.ranges import Span as Span
from curation.readers.ranges import misread as misread
from curation.readers.ranges import spans as spans
from curation.readers.ranges import why_whole as why_whole
from curation.readers.read import read as read
from curation.readers.read import read_at as read_at
from curation.readers.records import Damage as Damage
from curation.readers.records import Event as Event
from curation.readers.records import Page as Page
from curation.readers.records import Skipped as Skipped
from curation.readers.settings import ReaderSettings as ReaderSettings
