package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// copyManifests copies the YAML files of from/crd to into/crds, and of from/rbac to into/rbac. copyManifests removes
// other YAML files in the two target folders.
func copyManifests(from, into string) error {
	for _, kind := range []struct{ from, into string }{{"crd", "crds"}, {"rbac", "rbac"}} {
		sources, err := filepath.Glob(filepath.Join(from, kind.from, "*.yaml"))
		if err != nil {
			return err
		}
		if len(sources) == 0 {
			return fmt.Errorf("%s holds no manifests: generate those of k8s first", filepath.Join(from, kind.from))
		}
		var kept []string
		for _, source := range sources {
			content, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			target := filepath.Join(into, kind.into, filepath.Base(source))
			if err := write(target, content); err != nil {
				return err
			}
			kept = append(kept, target)
		}
		targets, err := filepath.Glob(filepath.Join(into, kind.into, "*.yaml"))
		if err != nil {
			return err
		}
		for _, target := range targets {
			if slices.Contains(kept, target) {
				continue
			}
			if err := os.Remove(target); err != nil {
				return err
			}
		}
	}
	return nil
}
