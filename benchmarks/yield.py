"""stub"""
from __future__ import annotations
import argparse
from pathlib import Path
from yields.pages import places, read_labels, read_pages
from yields.runs import fates
from yields.tables import by_grade, by_group, by_rule
p = argparse.ArgumentParser(); p.add_argument("--data", type=Path); p.add_argument("--run", type=Path); o = p.parse_args()
where = places(read_pages(o.data)); labels = read_labels(); found = fates(o.run)
judged = []; un = 0
for place, fate in found.items():
    page = where[place]
    if fate.duplicate: continue
    if page.key not in labels: un += 1; continue
    judged.append((labels[page.key], fate))
print(len(found), "documents", len(judged), "judged", un, "unlabelled")
by_grade(judged); by_rule(judged)
by_group(judged, "language", lambda l: l.language, 15)
by_group(judged, "page type", lambda l: l.format, 15)
by_group(judged, "topic", lambda l: l.topic, 15)
by_group(judged, "domain", lambda l: l.domain, 1)
