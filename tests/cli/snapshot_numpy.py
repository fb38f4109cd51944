# SPDX-License-Identifier: Apache-2.0
"""Reads every array of a snapshot with NumPy and holds it against what `weir store` says of the same store.

usage: snapshot_numpy.py SNAPSHOT STORE AS_OF (RFC 3339)
"""
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
from datetime import datetime, timezone

import numpy as np

folder, store, as_of = sys.argv[1:]
VERTICES_ASKED = 12
manifest = json.load(open(f"{folder}/manifest.json"))


def load(name):
    return np.load(f"{folder}/{name}.npy")


def texts(stem):
    """The texts behind NAME_offsets and NAME_bytes."""
    offsets, data = load(f"{stem}_offsets"), load(f"{stem}_bytes").tobytes()
    assert offsets[0] == 0 and offsets[-1] == len(data) and (np.diff(offsets) >= 0).all(), stem
    return [data[a:b].decode() for a, b in zip(offsets[:-1], offsets[1:])]


def weir(*arguments):
    command = ["weir", "store", *arguments, "--path", store, "--before", as_of]
    run = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def microseconds(text):
    at = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ")
    return round((at.replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1e6)


def features(stem, texts_stem, row):
    """A row's features, as weir prints them: the absent ones left out."""
    found = {}
    for path in glob.glob(f"{folder}/{stem}/feature.*.npy"):
        name = os.path.basename(path)[len("feature."):-len(".npy")]
        if "." in name:
            continue
        column = np.load(path, mmap_mode="r")
        if column.dtype == np.float32 and not np.isnan(column[row]):
            found[name] = float(column[row])
        elif column.dtype == np.int32 and column[row] >= 0:
            found[name] = texts(f"{texts_stem}/feature.{name}.text")[column[row]]
    return found


def same_features(said, found, what):
    assert said.keys() == found.keys(), (what, said, found)
    for name, value in said.items():
        same = value == found[name] if isinstance(value, str) else np.float32(value) == np.float32(found[name])
        assert same, (what, name, value, found[name])


def check_hashes():
    lines = open(f"{folder}/MANIFEST").read().splitlines()
    assert lines[-1] == f"end {len(lines) - 1}"
    for line in lines[:-1]:
        digest, length, path = line.split("  ")
        data = open(f"{folder}/{path}", "rb").read()
        assert len(data) == int(length) and hashlib.sha256(data).hexdigest() == digest, path


def spans(stem, times_name, vertices, count):
    """indptr, times and ends of lives or rows: within a vertex they rise, and begin before they end."""
    indptr, times, until = load(f"{stem}/indptr"), load(f"{stem}/{times_name}"), load(f"{stem}/until")
    assert len(indptr) == vertices + 1 and indptr[0] == 0 and indptr[-1] == len(times) == len(until) == count, stem
    assert (times < until).all() and (times < manifest["as_of_us"]).all(), stem
    owners = np.repeat(np.arange(vertices), np.diff(indptr))
    assert (times[1:] > times[:-1])[owners[1:] == owners[:-1]].all(), stem
    return indptr, times, until


def in_force(of, vertex):
    """The place of what a vertex has as of the snapshot, or None."""
    indptr, times, until = of
    last = indptr[vertex + 1] - 1
    return last if last >= indptr[vertex] and manifest["as_of_us"] < until[last] else None


def check_vertices():
    keys, rows = {}, {}
    for entry in manifest["vertices"]:
        stem = f"vertices/{entry['name']}"
        ids = load(f"{stem}/ids")
        keys[entry["name"]] = texts(f"{stem}/key")
        assert ids.dtype == np.uint64 and ids.shape == (entry["count"], 2), stem
        assert len(ids) == len(keys[entry["name"]]), stem
        whole = [int(high) << 64 | int(low) for high, low in ids]
        assert all(a < b for a, b in zip(whole, whole[1:])), stem
        spans(f"{stem}/lives", "first", len(ids), entry["lives"])
        rows[entry["name"]] = spans(f"{stem}/rows", "times", len(ids), entry["rows"])
    return keys, rows


def check_relation(entry, keys, ends):
    pairs = {}
    for direction, own, other in (("out", *ends), ("in", *reversed(ends))):
        stem = f"relations/{entry['name']}/{direction}"
        indptr, neighbors = load(f"{stem}/indptr"), load(f"{stem}/neighbors")
        times, events = load(f"{stem}/times"), load(f"{stem}/events")
        assert indptr[0] == 0 and indptr[-1] == len(neighbors) == len(times) == len(events) == entry["edges"], stem
        assert len(indptr) == len(keys[own]) + 1 and (np.diff(indptr) >= 0).all(), stem
        assert ((neighbors >= 0) & (neighbors < len(keys[other]))).all(), stem
        assert (times < manifest["as_of_us"]).all(), stem
        owners = np.repeat(np.arange(len(keys[own])), np.diff(indptr))
        same_list = owners[1:] == owners[:-1]
        assert (times[1:] <= times[:-1])[same_list].all(), stem
        columns = (owners, neighbors) if direction == "out" else (neighbors, owners)
        order = np.lexsort((events, times, *columns))
        pairs[direction] = [column[order] for column in (*columns, times, events)]
        for vertex in random.sample(range(len(keys[own])), min(VERTICES_ASKED, len(keys[own]))):
            said = weir("neighbors", own, keys[own][vertex], entry["name"], "--direction", direction)
            places = range(indptr[vertex], indptr[vertex + 1])
            assert len(said) == min(len(places), 100), (stem, vertex)
            for line, at in zip(said, places):
                assert line["key"] == keys[other][neighbors[at]] and int(line["event"], 16) == events[at], (stem, at)
                assert microseconds(line["time"]) == times[at], (stem, at)
                same_features(line["features"], features(stem, os.path.dirname(stem), at), (stem, at))
    assert all((a == b).all() for a, b in zip(pairs["out"], pairs["in"])), entry["name"]


def check_labels(name, entry, keys, values):
    stem = f"labels/{entry['name']}"
    targets, numbers, times = (load(f"{stem}/{array}") for array in ("targets", "values", "times"))
    assert len(targets) == len(numbers) == len(times) == entry["count"] > 0
    assert ((targets >= 0) & (targets < len(keys[name]))).all() and (times < manifest["as_of_us"]).all()
    newest = dict(zip(targets[::-1], numbers[::-1]))  # the newest comes first in the array
    for target in random.sample(sorted(newest), min(VERTICES_ASKED, len(newest))):
        (said,) = weir("get", name, keys[name][target])
        assert said["labels"][entry["name"]] == values[newest[target]], (stem, target)


def main():
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
    print(f"WEIR_TEST_SEED={seed}")
    random.seed(seed)
    check_hashes()
    keys, rows = check_vertices()
    ends = {"follows": ("user", "user"), "buys": ("user", "item")}
    for entry in manifest["relations"]:
        check_relation(entry, keys, ends[entry["name"]])
    for name in ("user", "item"):
        for vertex in random.sample(range(len(keys[name])), min(VERTICES_ASKED, len(keys[name]))):
            (said,) = weir("get", name, keys[name][vertex])
            high, low = map(int, load(f"vertices/{name}/ids")[vertex])
            assert said["id"] == f"{high:016x}{low:016x}", (name, vertex)
            row = in_force(rows[name], vertex)
            found = {} if row is None else features(f"vertices/{name}", f"vertices/{name}", row)
            same_features(said["features"], found, (name, vertex))
    for entry in manifest["labels"]:
        check_labels("user", entry, keys, ["good", "bad"])
    assert all(len(load(path[len(folder) + 1:-4])) >= 0 for path in glob.glob(f"{folder}/**/*.npy", recursive=True))
    print(f"{sum(entry['edges'] for entry in manifest['relations'])} edges are the same")


main()
