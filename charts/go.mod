module github.com/lectern-dev/lectern/charts

go 1.26.0

require github.com/lectern-dev/lectern/shared v0.0.0

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring v0.90.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	helm.sh/helm/v4 v4.3.1 // indirect
	sigs.k8s.io/gateway-api v1.5.0 // indirect
)

replace github.com/lectern-dev/lectern/shared => ../shared
