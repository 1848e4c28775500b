// Command crddoc prints a Markdown reference of CustomResourceDefinitions, with tables of the fields of each spec and
// status. The command reads the .yaml files of a folder, and sorts the definitions by kind.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crddoc FOLDER")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		kind := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, kind); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%s holds no definitions", folder)
	}
	slices.SortFunc(kinds, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	_, err = io.WriteString(out, page(kinds))
	return err
}
