// Job files as clusters take them.
#pragma once

#include <string>

namespace weft::jobs::testing {

inline const std::string pod = R"(  worker:
    replicas: 2
    template:
      spec:
        containers:
          - name: worker
            image: trainer:1
            workingDir: /data
            securityContext: {capabilities: {add: [IPC_LOCK]}}
            env:
              - name: CUDA_DEVICE_MAX_CONNECTIONS
                value: "1"
            resources: {limits: {cpu: 4, nvidia.com/gpu: 8}}
            volumeMounts: [{mountPath: /dev/shm, name: memory}]
        volumes:
          - name: memory
            emptyDir: {medium: Memory}
)";

/// Two nodes of eight ranks, in a queue.
inline const std::string plain = R"(apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata:
  name: gpt
spec:
  scheduler:
    t9kScheduler: {queue: default, priority: 50}
  config:
    localRank: true
    slotsPerWorker: 8
    run:
      python:
        - Megatron-DeepSpeed/pretrain_gpt.py
        - "--num-layers=24"
        - "--tensor-model-parallel-size=2"
        - "--pipeline-model-parallel-size=4"
        - "--fp16"
)" + pod;

/// One to three nodes, with a limit of failures.
inline const std::string elastic = R"(apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: grows}
spec:
  elastic: {enabled: true, minReplicas: 1, maxReplicas: 3, expectedReplicas: 3}
  runPolicy: {backoffLimit: 10}
  config:
    slotsPerWorker: 2
    run: {python: [train.py, a.yml]}
)" + pod;

inline std::string with(std::string file, const std::string& what, const std::string& by) {
  const auto at = file.find(what);
  return at == std::string::npos ? "no " + what : file.replace(at, what.size(), by);
}

}  // namespace weft::jobs::testing
