// No package belongs to this module: the modules are the folders that go.work names. The go command reads a
// repository's tags and revision into the programs that it builds only where this file stands.
module github.com/lectern-dev/lectern

go 1.26.0
