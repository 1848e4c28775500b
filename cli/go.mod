module github.com/lectern-dev/lectern/cli

go 1.26.0
