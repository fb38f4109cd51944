#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_picture.py - a piece of what `weir train --trace FILE` wrote as SVG: FILE BEGIN_MS LENGTH_MS > OUT.svg"""
import json
import sys

COLOURS = {"sample": "#4c78a8", "ask": "#72b7b2", "answer": "#9ecae9", "encode": "#54a24b", "bring": "#88d27a",
           "pull": "#b279a2",
           "wait": "#e6e6e6", "compute": "#f58518", "sum": "#e45756", "update": "#8c564b",
           "reduce": "#ff9da6"}
LEFT, TOP, LANE, GAP, WIDTH = 190, 44, 13, 8, 1000


def lanes_of(events):
    """Threads that work, by rank, each with its name."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    worked = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}
    return [(lane, names.get(lane, "")) for lane in sorted(worked)]


def draw(events, begin_us, length_us):
    events = [e for e in events if e["ph"] == "M" or begin_us - e["dur"] < e["ts"] < begin_us + length_us]
    lanes, top, rank = {}, TOP, None
    out = []
    for lane, name in lanes_of(events):
        top += GAP if lane[0] != rank else 0
        rank = lane[0]
        lanes[lane] = top
        out.append(f'<text x="{LEFT - 8}" y="{top + 10}" text-anchor="end">rank {rank}, {name}</text>')
        out.append(f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{LANE - 2}" fill="#fafafa"/>')
        top += LANE
    for e in events:
        if e["ph"] != "X":
            continue
        first, last = max(e["ts"], begin_us), min(e["ts"] + e["dur"], begin_us + length_us)
        x, width = LEFT + (first - begin_us) / length_us * WIDTH, max((last - first) / length_us * WIDTH, 0.3)
        out.append(f'<rect x="{x:.1f}" y="{lanes[e["pid"], e["tid"]]}" width="{width:.1f}" height="{LANE - 2}" '
                   f'fill="{COLOURS.get(e["name"], "#000000")}"/>')
    for i in range(11):
        x = LEFT + WIDTH * i / 10
        out.append(f'<line x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{top}" stroke="#cccccc" stroke-width="0.5"/>')
        out.append(f'<text x="{x}" y="{TOP - 10}" text-anchor="middle">{length_us * i / 10000:g} ms</text>')
    for i, (name, colour) in enumerate(COLOURS.items()):
        out.append(f'<rect x="{LEFT + 88 * i}" y="4" width="11" height="11" fill="{colour}"/>')
        out.append(f'<text x="{LEFT + 88 * i + 15}" y="14">{name}</text>')
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{top + 10}" '
          'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>')
    print("\n".join(out) + "\n</svg>")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] in "MX"]
    begin = min(e["ts"] for e in events if e["ph"] == "X")
    draw(events, begin + float(sys.argv[2]) * 1000, float(sys.argv[3]) * 1000)


if __name__ == "__main__":
    main()
