module github.com/lectern-dev/lectern/tools/errorpage

go 1.26.0

require github.com/yuin/goldmark v1.7.8
