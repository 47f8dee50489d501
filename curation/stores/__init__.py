"""Files away from this machine: every request tried again while its failure may pass.

Any file system of fsspec: object stores (s3://, gs://, abfs://), hdfs://, https://. Their libraries
try again, too, each in its own way and not always; the tries here come on top and are the same for
all. Answers are checked for length, and no listing is ever taken from a cache.
"""

from curation.stores.persist import UnfinishedError as UnfinishedError
from curation.stores.persist import each as each
from curation.stores.persist import is_transient as is_transient
from curation.stores.persist import persistently as persistently
from curation.stores.systems import file_system as file_system
from curation.stores.systems import glob as glob
from curation.stores.systems import info as info
from curation.stores.systems import is_url as is_url
from curation.stores.systems import listing as listing
from curation.stores.systems import local_tree as local_tree
from curation.stores.systems import misread as misread
from curation.stores.systems import tree as tree
from curation.stores.systems import version as version
from curation.stores.transfers import PART_BYTES as PART_BYTES
from curation.stores.transfers import StoredFile as StoredFile
from curation.stores.transfers import fetch as fetch
from curation.stores.transfers import open_url as open_url
from curation.stores.transfers import reads_ranges as reads_ranges
from curation.stores.transfers import remove as remove
from curation.stores.transfers import write as write
