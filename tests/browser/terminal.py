"""What a terminal does with a line that a page gives to be copied."""

from __future__ import annotations

import shlex

import requests


def run(line):
    """What a terminal would do with the line that the page gives."""
    words = shlex.split(line.replace("\\\n", " "))
    assert words[0] == "curl"
    headers, data, address = {}, None, ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(rest)
        else:
            address = word
    return requests.request("POST" if data else "GET", address, headers=headers, data=data, timeout=10)
