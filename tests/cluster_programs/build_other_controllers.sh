#!/usr/bin/env bash
# Builds descheduler, KWOK and JobSet from the Go module proxy into $GO, with the manifests that their tests need.
#   DESCHEDULER, KWOK, JOBSET   versions
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$GO"
fetch() { # module, version: prints a writable copy of its source
  local source
  source=$(cd "$work" && GOFLAGS=-mod=mod go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  cp -r "$source" "$work/${1##*/}"
  chmod -R u+w "$work/${1##*/}"
  echo "$work/${1##*/}"
}
descheduler=$(fetch sigs.k8s.io/descheduler "$DESCHEDULER")
(cd "$descheduler" && GOFLAGS=-mod=mod go build -o "$GO/descheduler" ./cmd/descheduler)
kwok=$(fetch sigs.k8s.io/kwok "$KWOK")
(cd "$kwok" && GOFLAGS=-mod=mod go build -o "$GO/kwok" ./cmd/kwok)
: > "$GO/kwok-stages.yaml"
for stage in node/fast/node-initialize pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
  { cat "$kwok/kustomize/stage/$stage.yaml"; echo ---; } >> "$GO/kwok-stages.yaml"
done
jobset=$(fetch sigs.k8s.io/jobset "$JOBSET")
(cd "$jobset" && GOFLAGS=-mod=mod go build -o "$GO/jobset" .)
mkdir -p "$GO/jobset-manifests"
cp "$jobset/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml" "$GO/jobset-manifests/crd.yaml"
cp "$jobset/config/components/webhook/manifests.yaml" "$GO/jobset-manifests/webhooks.yaml"
