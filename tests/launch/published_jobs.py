"""Nine job files for Megatron-DeepSpeed as T9k publishes them (t9k/examples, deepspeed/megatron-gpt/training), made anew of what they say."""
import json

MODELS = {  # layers, width, heads, init, tokens, samples, rate, batch, stage in DeepSpeed's file
    "125m": (12, 768, 12, 0.021, 2_500_000_000, 2_500_000, "6.0e-4", 256, 2),
    "1-3b": (24, 2048, 16, 0.013, 26_000_000_000, 26_000_000, "2.0e-4", 512, 2),
    "13b": (40, 5120, 40, 0.008, 260_000_000_000, 260_000_000, "1.0e-4", 1024, 1),
}
JOBS = {  # model, pods, ranks a pod, --zero-stage, pp, tp
    "gpt-125m": ("125m", 1, 1, 0, 1, 1),
    "gpt-125m-2xdp": ("125m", 1, 2, 2, 1, 1),
    "gpt-125m-4xdp": ("125m", 1, 4, 2, 1, 1),
    "gpt-1-3b-4xdp": ("1-3b", 1, 4, 2, 1, 1),
    "gpt-1-3b-8xdp": ("1-3b", 1, 8, 2, 1, 1),
    "gpt-1-3b-4xdp-4xpp": ("1-3b", 2, 8, 1, 4, 1),
    "gpt-13b-4xdp-4xpp": ("13b", 2, 8, 1, 4, 1),
    "gpt-13b-4xdp-8xpp": ("13b", 4, 8, 1, 8, 1),
    "gpt-13b-4xdp-4xpp-4xtp": ("13b", 8, 8, 1, 4, 4),
}


def flags(name):
    """What pretrain_gpt.py is told."""
    model, _, _, stage, pp, tp = JOBS[name]
    layers, width, heads, init, tokens, samples, rate, batch, _ = MODELS[model]
    there, out = "examples/deepspeed/megatron-gpt", f"output/gpt-{model}"
    words = f"""--seq-length=2048 --max-position-embeddings=2048 --num-layers={layers} --hidden-size={width} --num-attention-heads={heads}
        --init-method-std={init} --train-samples={samples} --train-tokens={tokens} --lr={rate} --min-lr=1.0e-6 --lr-warmup-tokens={tokens // 100}
        --lr-decay-tokens={tokens} --lr-decay-style=cosine --adam-beta1=0.9 --adam-beta2=0.95
        --deepspeed --deepspeed_config={there}/training/gpt-{model}-ds-config.json --global-batch-size={batch} --micro-batch-size=16 --zero-stage={stage}
        --tensor-model-parallel-size={tp} {"" if pp > 1 else "--no-pipeline-parallel"} --pipeline-model-parallel-size={pp}
        {"" if model == "125m" else "--deepspeed-activation-checkpointing"} --weight-decay=0.1 --clip-grad=1.0 --seed=1234
        --vocab-file={there}/tokenizer/wiki-en-tokenizer/vocab.json --merge-file={there}/tokenizer/wiki-en-tokenizer/merges.txt
        --data-path={there}/dataset/wiki-en/gpt_text_document --data-impl=mmap --split=949,50,1 --num-workers=8 --save={out}/model --load={out}/model
        --tensorboard-queue-size=1 --log-timers-to-tensorboard --log-batch-size-to-tensorboard --log-validation-ppl-to-tensorboard
        --tensorboard-dir={out}/tensorboard --log-interval=10 --eval-iters=10 --eval-interval=100 --save-interval=1000 --fp16
        {"" if model == "125m" else "--checkpoint-activations"} --use-flash-attn"""
    return words.split()


def job(name):
    model, pods, ranks, *_ = JOBS[name]
    return f"""apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata:
  name: gpt-{model}
spec:
  config:
    localRank: true
    slotsPerWorker: {ranks}
    run:
      python: {json.dumps(["Megatron-DeepSpeed/pretrain_gpt.py", *flags(name)])}
  worker:
    replicas: {pods}
    template:
      spec:
        containers:
          - name: worker
            image: t9kpublic/megatron-deepspeed:23.06-py3
            workingDir: /t9k/mnt/
            securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}
            env: [{{name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}}]
            resources:
              requests: {{cpu: {2 * ranks}, memory: {32 * ranks}Gi, nvidia.com/gpu: {ranks}}}
              limits: {{cpu: {4 * ranks}, memory: {64 * ranks}Gi, nvidia.com/gpu: {ranks}}}
            volumeMounts: [{{mountPath: /t9k/mnt, name: data}}, {{mountPath: /dev/shm, name: dshm}}]
        volumes:
          - {{name: data, persistentVolumeClaim: {{claimName: megatron}}}}
          - {{name: dshm, emptyDir: {{medium: Memory}}}}
"""


def deepspeed_file(name):
    """Its name and content."""
    model = JOBS[name][0]
    *_, batch, stage = MODELS[model]
    return f"gpt-{model}-ds-config.json", json.dumps({
        "train_batch_size": batch, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 10,
        "zero_optimization": {"stage": stage, "elastic_checkpoint": True}, "gradient_clipping": 1.0, "prescale_gradients": False,
        "fp16": {"enabled": True, "loss_scale": 0, "loss_scale_window": 500, "hysteresis": 2, "min_loss_scale": 1, "initial_scale_power": 11},
        "wall_clock_breakdown": False}, indent=2)


def write(name, folder):
    """Its two files side by side, as they are published; where the job's lies."""
    more, content = deepspeed_file(name)
    (folder / more).write_text(content)
    (folder / f"{name}.yaml").write_text(job(name))
    return folder / f"{name}.yaml"
