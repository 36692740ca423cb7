//go:build tools

// Package programs names the older kubectl that is run against Bayplan's API, so that go.mod pins it.
package programs

import _ "k8s.io/kubernetes/cmd/kubectl"
