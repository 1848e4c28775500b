// Command generate writes the generated files of the chart lectern. Routes come from shared/routes. The definitions of
// custom resources and the roles come from k8s/config. The names of settings in the schema come from
// docs/reference/settings.md. The list of values comes from values.yaml, from which helm-docs also makes the README.
// The option -root names the repository's root folder, which is the working folder by default.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
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
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	needed, err := valuesFile(values)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(chart, "files", "values.yaml"), needed); err != nil {
		return err
	}
	settings, err := os.ReadFile(filepath.Join(root, "docs", "reference", "settings.md"))
	if err != nil {
		return err
	}
	if err := rewrite(filepath.Join(chart, "values.schema.json"), func(schema []byte) ([]byte, error) {
		return fillSchema(schema, settings)
	}); err != nil {
		return err
	}
	return writeReadme(root)
}

// writeReadme runs helm-docs, which makes the chart's README.md from README.md.gotmpl and the comments in values.yaml.
func writeReadme(root string) error {
	chart, err := filepath.Abs(filepath.Join(root, "charts", "lectern"))
	if err != nil {
		return err
	}
	docs := exec.Command("go", "tool", "helm-docs", "--chart-search-root", chart, "--sort-values-order", "file", "--log-level", "warning")
	docs.Dir = filepath.Join(root, "tools", "helm-docs")
	docs.Env = append(os.Environ(), "GOWORK=off")
	docs.Stderr = os.Stderr
	return docs.Run()
}

// write writes content to the file at path and makes missing folders. A file that already has the content stays
// untouched.
func write(path string, content []byte) error {
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// rewrite replaces the content of the file at path by the content that change makes of it.
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
