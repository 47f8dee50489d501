"""Parts of benchmarks/proof.py: the pages, and what each pipeline makes of them."""
