"""Parts of benchmarks/yield.py: pages and labels, runs, tables, intact structure, bits per byte."""
