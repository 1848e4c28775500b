// Package k8s has no code. It generates the files for Kubernetes.
package k8s

//go:generate ../scripts/generate-k8s
