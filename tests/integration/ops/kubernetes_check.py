#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of ops/kubernetes: fields that are published, and names that lead somewhere.  kubernetes_check.py FOLDER"""
import os
import re
import sys

import yaml

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "quantity": (str, int)}
OF_CRON = {
    "schedule": str,
    "timeZone": str,
    "concurrencyPolicy": str,
    "startingDeadlineSeconds": int,
    "jobTemplate": dict,
}
faults = []


def fault(text):
    faults.append(text)


def fields(path):
    """From "spec.runPolicy<tab>object" to {("spec", "runPolicy"): ("object", [])}."""
    table = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            name, kind = line.rstrip("\n").split("\t")
            word, _, choices = kind.partition(" ")
            table[name] = (word, choices.split("|") if choices else [])
    return table


def check(table, where, path, value):
    kind, choices = table[path]
    if not isinstance(value, KINDS[kind]) or (kind == "integer" and isinstance(value, bool)):
        return fault(f"{where}: {path} is {value!r}, no {kind}")
    if choices and value not in choices:
        fault(f"{where}: {path} is {value!r}, none of {choices}")
    for key, item in value.items() if isinstance(value, dict) else []:
        inner = f"{path}.*" if f"{path}.*" in table else f"{path}.{key}"
        if inner not in table:
            fault(f"{where}: there is no {path}.{key}")
        else:
            check(table, where, inner, item)
    for item in value if isinstance(value, list) else []:
        if f"{path}[]" not in table:
            return fault(f"{where}: {path} has items that mpijob.tsv does not know")
        check(table, where, f"{path}[]", item)


def check_pod(where, pod, claims, maps):
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    for volume in volumes.values():
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim and claim not in claims:
            fault(f"{where}: nobody makes the claim {claim}")
        if "configMap" in volume and volume["configMap"]["name"] not in maps:
            fault(f"{where}: nobody makes the ConfigMap {volume['configMap']['name']}")
    for container in pod["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                fault(f"{where}: {container['name']} mounts {mount['name']}, which is no volume")


def check_night(where, job, table, claims):
    check(table, where, "spec", job["spec"])
    if faults:
        return
    replicas = job["spec"]["mpiReplicaSpecs"]
    if set(replicas) != {"Launcher", "Worker"} or replicas["Launcher"]["replicas"] != 1:
        fault(f"{where}: a job has one Launcher, and Workers")
    if job["spec"]["runPolicy"].get("cleanPodPolicy") not in ("All", "Running", "None"):
        fault(f"{where}: cleanPodPolicy is All, Running or None")
    for name, replica in replicas.items():
        if replica.get("restartPolicy") not in ("Never", "OnFailure"):
            fault(f"{where}: restartPolicy of {name} is Never or OnFailure")
        check_pod(f"{where}: {name}", replica["template"]["spec"], claims, set())
    mounts = [
        sorted((m["name"], m["mountPath"]) for m in r["template"]["spec"]["containers"][0]["volumeMounts"])
        for r in replicas.values()
    ]
    if mounts[0] != mounts[1]:
        fault(f"{where}: ranks find other paths than the launcher names: {mounts}")
    launcher = replicas["Launcher"]["template"]["spec"]["containers"][0]
    words = launcher["command"] + launcher["args"]
    slots = replicas["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    if words[words.index("--ranks") + 1] != str(slots):
        fault(f"{where}: {words[words.index('--ranks') + 1]} ranks, but {slots} slots")
    print("command", *words)


def main(folder):
    table = fields(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpijob.tsv"))
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            files[name] = list(yaml.safe_load_all(text))
    kustomization = files.pop("kustomization.yaml")[0]
    maps = {made["name"]: made["files"] for made in kustomization["configMapGenerator"]}
    listed = kustomization["resources"] + [name for made in maps.values() for name in made]
    if sorted(listed) != sorted(files):
        fault(f"kustomization.yaml lists {sorted(listed)}, there are {sorted(files)}")
    every = [(name, document) for name, documents in files.items() for document in documents]
    claims = {d["metadata"]["name"] for _, d in every if d["kind"] == "PersistentVolumeClaim"}
    kinds = {}
    for name, document in every:
        kinds.setdefault((document["apiVersion"], document["kind"]), []).append((name, document))
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", document["metadata"]["name"]):
            fault(f"{name}: {document['metadata']['name']} is no name")
    for name, job in kinds[("kubeflow.org/v2beta1", "MPIJob")]:
        check_night(name, job, table, claims)
    for name, cron in kinds[("batch/v1", "CronJob")]:
        for key, value in cron["spec"].items():
            if not isinstance(value, OF_CRON.get(key, ())):
                fault(f"{name}: spec.{key} is no field of a CronJob, or no such value")
        pod = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        check_pod(name, pod, claims, maps)
        account = pod["serviceAccountName"]
        if account not in {d["metadata"]["name"] for _, d in kinds[("v1", "ServiceAccount")]}:
            fault(f"{name}: nobody makes the account {account}")
        created = os.path.basename(pod["containers"][0]["command"][-1])
        if created not in maps.get(pod["volumes"][0]["configMap"]["name"], []):
            fault(f"{name}: creates {created}, which its ConfigMap has not got")
    print(f"{len(every)} objects in {len(files)} files")
    sys.exit("\n".join(faults) if faults else 0)


main(sys.argv[1])
