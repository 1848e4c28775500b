module github.com/lectern-dev/lectern/tools/weight

go 1.26.0
