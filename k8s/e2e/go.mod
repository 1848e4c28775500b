module github.com/lectern-dev/lectern/k8s/e2e

go 1.26.0

require (
	github.com/lectern-dev/lectern/client v0.0.0
	github.com/lectern-dev/lectern/services/region v0.0.0
	github.com/lectern-dev/lectern/shared v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
)

replace (
	github.com/lectern-dev/lectern/client => ../../client
	github.com/lectern-dev/lectern/services/region => ../../services/region
	github.com/lectern-dev/lectern/shared => ../../shared
)
