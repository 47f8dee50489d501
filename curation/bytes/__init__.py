"""Bytes of texts and pages: names, UTF-8, search, tables of hashes. For use inside kernels."""
