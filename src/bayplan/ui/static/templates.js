// Templates to create objects from. They are texts, which are sent exactly as shown.

/** @typedef {{ kind: string, name: string, what: string, text: string }} Template */

/** @type {Template[]} */
export const TEMPLATES = [
  {
    kind: "Pod",
    name: "pod",
    what: "requests CPU and memory",
    text: `apiVersion: v1
kind: Pod
metadata:
  name: web-{n}
  namespace: default
  labels:
    app: web
spec:
  containers:
  - name: web
    image: web:1
    resources:
      requests:
        cpu: 500m
        memory: 512Mi
`,
  },
  {
    kind: "Pod",
    name: "gpu",
    what: "requests a GPU, tolerates its taint",
    text: `apiVersion: v1
kind: Pod
metadata:
  name: trainer-{n}
  namespace: default
  labels:
    app: trainer
spec:
  tolerations:
  - key: gpu
    operator: Exists
    effect: NoSchedule
  containers:
  - name: trainer
    image: trainer:1
    resources:
      requests:
        cpu: "4"
        memory: 16Gi
      limits:
        nvidia.com/gpu: "1"
`,
  },
  {
    kind: "Pod",
    name: "spread",
    what: "spreads over zones",
    text: `apiVersion: v1
kind: Pod
metadata:
  name: api-{n}
  namespace: default
  labels:
    app: api
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector:
      matchLabels:
        app: api
  containers:
  - name: api
    image: api:1
    resources:
      requests:
        cpu: 250m
        memory: 256Mi
`,
  },
  {
    kind: "Pod",
    name: "urgent",
    what: "may preempt other pods",
    text: `apiVersion: v1
kind: Pod
metadata:
  name: urgent-{n}
  namespace: default
spec:
  priorityClassName: system-cluster-critical
  containers:
  - name: work
    image: work:1
    resources:
      requests:
        cpu: "2"
        memory: 4Gi
`,
  },
  {
    kind: "Node",
    name: "node",
    what: "16 CPUs, 64 GiB",
    text: `apiVersion: v1
kind: Node
metadata:
  name: node-new-{n}
  labels:
    kubernetes.io/hostname: node-new-{n}
    topology.kubernetes.io/zone: zone-a
status:
  capacity:
    cpu: "16"
    memory: 64Gi
    pods: "110"
  allocatable:
    cpu: "16"
    memory: 64Gi
    pods: "110"
  conditions:
  - type: Ready
    status: "True"
`,
  },
  {
    kind: "Node",
    name: "gpu-node",
    what: "8 GPUs, tainted",
    text: `apiVersion: v1
kind: Node
metadata:
  name: gpu-new-{n}
  labels:
    kubernetes.io/hostname: gpu-new-{n}
    topology.kubernetes.io/zone: zone-a
spec:
  taints:
  - key: gpu
    effect: NoSchedule
status:
  capacity:
    cpu: "64"
    memory: 512Gi
    pods: "110"
    nvidia.com/gpu: "8"
  allocatable:
    cpu: "64"
    memory: 512Gi
    pods: "110"
    nvidia.com/gpu: "8"
  conditions:
  - type: Ready
    status: "True"
`,
  },
  {
    kind: "Deployment",
    name: "deployment",
    what: "three replicas",
    text: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
spec:
  replicas: 3
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        image: web:1
        resources:
          requests:
            cpu: 500m
            memory: 512Mi
`,
  },
  {
    kind: "Job",
    name: "job",
    what: "ten completions, five at a time",
    text: `apiVersion: batch/v1
kind: Job
metadata:
  name: batch
  namespace: default
spec:
  completions: 10
  parallelism: 5
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: work
        image: work:1
        resources:
          requests:
            cpu: "1"
            memory: 1Gi
`,
  },
  {
    kind: "PriorityClass",
    name: "priority",
    what: "its pods may preempt other pods",
    text: `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: urgent
value: 100000
description: May preempt pods of lower priority.
`,
  },
  {
    kind: "PodDisruptionBudget",
    name: "budget",
    what: "keeps two of an app",
    text: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: default
spec:
  minAvailable: 2
  selector:
    matchLabels:
      app: web
`,
  },
  {
    kind: "PersistentVolumeClaim",
    name: "claim",
    what: "with a class that waits for its pod",
    text: `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: default
spec:
  accessModes:
  - ReadWriteOnce
  storageClassName: local
  resources:
    requests:
      storage: 10Gi
`,
  },
];
