// Package k8s holds no code: what is generated for Kubernetes is generated from here.
package k8s

//go:generate ../scripts/generate-k8s
