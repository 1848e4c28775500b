module github.com/lectern-dev/lectern/tools/docs

go 1.26.0

require github.com/yuin/goldmark v1.7.8
