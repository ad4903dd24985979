#!/usr/bin/env python3
"""jobs.py WEFT: what weft job renders, held against Kubernetes' published schemas (pip install kubernetes-validate)."""
import pathlib
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "launch"))
import published_jobs

JOB = """apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: gpt, namespace: team}
spec:
  scheduler: {t9kScheduler: {queue: default, priority: 50}}
  ELASTIC
  config: {localRank: true, slotsPerWorker: 8, run: {python: [pretrain_gpt.py, "--num-layers=24", "--fp16"]}}
  worker:
    replicas: 2
    template:
      spec:
        containers:
          - name: worker
            image: trainer:1
            workingDir: /data
            securityContext: {capabilities: {add: [IPC_LOCK]}}
            env: [{name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}]
            resources: {requests: {cpu: 16, memory: 256Gi, nvidia.com/gpu: 8}, limits: {cpu: 32, memory: 512Gi, nvidia.com/gpu: 8}}
            volumeMounts: [{mountPath: /data, name: data}, {mountPath: /dev/shm, name: memory}]
        volumes:
          - {name: data, persistentVolumeClaim: {claimName: megatron}}
          - {name: memory, emptyDir: {medium: Memory}}
"""


def rendered(weft, *words):
    said = subprocess.run([weft, "job", "render", *words], capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit(f"jobs.py: {words}\n{said.stderr}")
    return list(yaml.safe_load_all(said.stdout))


def inside(thing):
    """What of an operator's object is Kubernetes' own: the jobs that it would make."""
    spec = thing.get("spec")
    if thing["kind"] in ("JobSet", "TrainingRuntime"):
        for job in (spec["template"]["spec"] if thing["kind"] == "TrainingRuntime" else spec)["replicatedJobs"]:
            yield job["template"]["metadata"], job["template"]["spec"]
    if thing["kind"] == "MPIJob":
        for role in spec["mpiReplicaSpecs"].values():
            pod = {**role["template"]["spec"], "restartPolicy": role["restartPolicy"]}
            yield {}, {"template": {**role["template"], "spec": pod}}


def main():
    weft, checked, newest = sys.argv[1], 0, kubernetes_validate.latest_version()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plain, elastic, more = (folder / file for file in ("plain.yaml", "elastic.yaml", "ds.json"))
        plain.write_text(JOB.replace("  ELASTIC\n", ""))
        elastic.write_text(JOB.replace("ELASTIC", "elastic: {enabled: true, minReplicas: 1, maxReplicas: 4}"))
        more.write_text('{"train_batch_size": 8}\n')
        asked = [[plain], [elastic], ["--file", more, "--priority-class", "high", plain],
                 ["--name", "a", "--image", "i", "--nodes", "2", "--slots", "2", "--gpus", "2", "--claim", "c:/data", "train", "gpt"]]
        asked += [[published_jobs.write(job, folder)] for job in published_jobs.JOBS]
        for words in asked:
            for kind in ("job", "jobset", "trainjob", "mpijob"):
                if kind == "mpijob" and words == [elastic]:
                    continue
                for thing in rendered(weft, "--kind", kind, *map(str, words)):
                    if "k8s.io" not in thing["apiVersion"] and "kubeflow" not in thing["apiVersion"]:
                        kubernetes_validate.validate(thing, newest, strict=True)
                        checked += 1
                    # Their own schemas are not published with Kubernetes'; the pods inside are Kubernetes'.
                    for metadata, spec in inside(thing):
                        kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", **metadata}, "spec": spec}, newest, strict=True)
                        checked += 1
    print(f"jobs: {checked} objects are as Kubernetes {newest} wants them")


if __name__ == "__main__":
    main()
