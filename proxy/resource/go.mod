module github.com/lectern-dev/lectern/proxy/resource

go 1.26.0
