module github.com/lectern-dev/lectern/tools/steady

go 1.26.0
