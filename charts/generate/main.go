// Command generate writes what the chart lectern has from elsewhere: its routes from shared/routes, the custom
// resources' definitions and the roles from k8s/config, the names of variables in its schema from
// docs/operating.md, and its README from its values. It works on the project's root, the working folder unless
// -root names another.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the project's root")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "charts/generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	chart := filepath.Join(root, "charts", "lectern")
	if err := write(filepath.Join(chart, "files", "routes.yaml"), routesFile()); err != nil {
		return err
	}
	if err := copyManifests(filepath.Join(root, "k8s", "config"), filepath.Join(chart, "files")); err != nil {
		return err
	}
	operating, err := os.ReadFile(filepath.Join(root, "docs", "operating.md"))
	if err != nil {
		return err
	}
	if err := rewrite(filepath.Join(chart, "values.schema.json"), func(schema []byte) ([]byte, error) {
		return fillSchema(schema, operating)
	}); err != nil {
		return err
	}
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	template, err := os.ReadFile(filepath.Join(chart, "README.md.gotmpl"))
	if err != nil {
		return err
	}
	readme, err := readmeOf(template, values)
	if err != nil {
		return err
	}
	return write(filepath.Join(chart, "README.md"), readme)
}

// write writes a file, unless it has that content.
func write(path string, content []byte) error {
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// rewrite changes a file.
func rewrite(path string, change func([]byte) ([]byte, error)) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return write(path, after)
}
