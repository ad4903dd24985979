#!/usr/bin/env python3
"""jobs.py WEFT: what weft job renders, held against Kubernetes' published schemas (pip install kubernetes-validate); and read by kubectl, where
one is installed, with apply --dry-run=client. That asks a server for little: which kinds there are, and whether the objects exist. A server
that says so stands here for a cluster's; it has no schemas, so validation is the first part's."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

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


# A group's kinds by its version, with the plurals that kubectl asks for.
GROUPS = {
    "v1": {"Service": "services", "ConfigMap": "configmaps", "Secret": "secrets", "ServiceAccount": "serviceaccounts"},
    "batch/v1": {"Job": "jobs"},
    "rbac.authorization.k8s.io/v1": {"Role": "roles", "RoleBinding": "rolebindings"},
    "jobset.x-k8s.io/v1alpha2": {"JobSet": "jobsets"},
    "trainer.kubeflow.org/v1alpha1": {"TrainJob": "trainjobs", "TrainingRuntime": "trainingruntimes"},
    "kubeflow.org/v2beta1": {"MPIJob": "mpijobs"},
}


class Discovery(http.server.BaseHTTPRequestHandler):
    """As much of an API server as apply --dry-run=client asks: kinds, and that no object is there."""

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        if path == "version":
            return self.say({"major": "1", "minor": "32", "gitVersion": "v1.32.0"})
        if path == "api":
            return self.say({"kind": "APIVersions", "versions": ["v1"]})
        if path == "apis":
            groups = [v.split("/") for v in GROUPS if "/" in v]
            return self.say({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": g, "versions": [{"groupVersion": f"{g}/{v}", "version": v}], "preferredVersion": {"groupVersion": f"{g}/{v}", "version": v}}
                for g, v in groups]})
        kinds = GROUPS.get(path.removeprefix("apis/").removeprefix("api/"))
        if kinds:
            return self.say({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": path.split("/", 1)[1], "resources": [
                {"name": plural, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "create", "patch"]}
                for kind, plural in kinds.items()]})
        return self.say({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}, 404)

    def say(self, thing, code=200):
        body = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Kubectl:
    """The real program, before a server that answers from here."""

    def __init__(self, folder):
        self.path, self.home = shutil.which("kubectl"), folder
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Discovery)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def apply(self, things):
        """Each comes back as it was sent, and would be made."""
        stream = yaml.safe_dump_all(things)
        words = [self.path, "--server", f"http://127.0.0.1:{self.server.server_port}", "apply", "--dry-run=client", "--validate=false", "-f", "-"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "KUBECONFIG": str(self.home / "none")}
        said = subprocess.run(words, input=stream, capture_output=True, text=True, env=env)
        made = said.stdout.splitlines()
        wanted = [f"/{thing['metadata']['name']} created (dry run)" for thing in things]
        if said.returncode != 0 or len(made) != len(wanted) or not all(line.endswith(end) for line, end in zip(made, wanted)):
            sys.exit(f"jobs.py: kubectl apply --dry-run=client\n{said.stdout}{said.stderr}")
        listed = subprocess.run([*words, "-o", "json"], input=stream, capture_output=True, text=True, env=env)
        back = json.loads(listed.stdout)
        for thing, mine in zip(back["items"] if back["kind"] == "List" else [back], things):
            if thing["kind"] != mine["kind"] or thing.get("spec") != mine.get("spec") or thing.get("data") != mine.get("data"):
                sys.exit(f"jobs.py: kubectl reads another {mine['kind']} than weft wrote")
        return len(things)


def main():
    weft, checked, applied, newest = sys.argv[1], 0, 0, kubernetes_validate.latest_version()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kubectl = Kubectl(folder) if shutil.which("kubectl") else None
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
                things = rendered(weft, "--kind", kind, *map(str, words))
                applied += kubectl.apply(things) if kubectl else 0
                for thing in things:
                    if "k8s.io" not in thing["apiVersion"] and "kubeflow" not in thing["apiVersion"]:
                        kubernetes_validate.validate(thing, newest, strict=True)
                        checked += 1
                    # Their own schemas are not published with Kubernetes'; the pods inside are Kubernetes'.
                    for metadata, spec in inside(thing):
                        kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", **metadata}, "spec": spec}, newest, strict=True)
                        checked += 1
    print(f"jobs: {checked} objects are as Kubernetes {newest} wants them")
    print(f"jobs: {applied} objects go through kubectl apply --dry-run=client" if kubectl else "jobs: no kubectl is installed here, and none was tried")


if __name__ == "__main__":
    main()
