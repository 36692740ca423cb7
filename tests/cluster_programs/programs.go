//go:build tools

// Package programs names the stock programs that are run against Bayplan's API, so that go.mod pins them.
package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
