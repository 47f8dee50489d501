"""stub"""

import argparse


def add_train(p: argparse.ArgumentParser) -> None: ...
