module github.com/lectern-dev/lectern/client

go 1.26.0

ignore ./typescript
