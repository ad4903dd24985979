#!/usr/bin/env python3
"""jobs.py WEFT: what weft job renders, held against Kubernetes' published schemas (pip install kubernetes-validate)."""
import pathlib
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

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


def main():
    weft, checked, newest = sys.argv[1], 0, kubernetes_validate.latest_version()
    with tempfile.TemporaryDirectory() as name:
        plain, elastic, more = (pathlib.Path(name) / file for file in ("plain.yaml", "elastic.yaml", "ds.json"))
        plain.write_text(JOB.replace("  ELASTIC\n", ""))
        elastic.write_text(JOB.replace("ELASTIC", "elastic: {enabled: true, minReplicas: 1, maxReplicas: 4}"))
        more.write_text('{"train_batch_size": 8}\n')
        for words in ([plain], [elastic], ["--file", more, "--priority-class", "high", plain],
                      ["--name", "a", "--image", "i", "--nodes", "2", "--slots", "2", "--gpus", "2", "--claim", "c:/data", "train", "gpt"]):
            for thing in rendered(weft, *map(str, words)):
                kubernetes_validate.validate(thing, newest, strict=True)
                checked += 1
        # Their own schemas are not published with Kubernetes'; the pods inside are Kubernetes'.
        jobset = rendered(weft, "--kind", "jobset", str(plain))[0]["spec"]["replicatedJobs"][0]["template"]["spec"]
        roles = rendered(weft, "--kind", "mpijob", str(plain))[0]["spec"]["mpiReplicaSpecs"]
        never = {"spec": {"restartPolicy": "Never"}}
        for spec in (jobset, *({"template": {**role["template"], "spec": {**role["template"]["spec"], **never["spec"]}}} for role in roles.values())):
            kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}, newest, strict=True)
            checked += 1
    print(f"jobs: {checked} objects are as Kubernetes {newest} wants them")


if __name__ == "__main__":
    main()
