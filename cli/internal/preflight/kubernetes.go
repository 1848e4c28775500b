package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// clusterRights are the kinds that helm creates objects of.
var clusterRights = []string{
	"deployments.apps", "services", "serviceaccounts", "secrets", "jobs.batch", "poddisruptionbudgets.policy",
	"networkpolicies.networking.k8s.io", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io",
}

// requiredKeys are the keys that the chart's Secrets must have, by the name of the Secret after that of the release. A
// test checks that pods of the chart read these keys.
var requiredKeys = map[string][]string{
	"entries-database":     {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"embeddables-database": {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"experiments-database": {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"region-database":      {"DATABASE_URL", "MIGRATE_DATABASE_URL"},
	"auth":                 {"AUTH_DATABASE_URL", "AUTH_ADMIN_DATABASE_URL"},
	"redis":                {"REDIS_URL"},
	"keys":                 {"EDGE_KEYS", "INGEST_API_KEYS"},
}

// command returns a command of kubectl in the namespace, with the user's current context.
func (o Options) command(ctx context.Context, args ...string) *exec.Cmd {
	if o.Namespace != "" {
		args = append([]string{"--namespace=" + o.Namespace}, args...)
	}
	return exec.CommandContext(ctx, "kubectl", args...)
}

// kubectl runs a command of kubectl, and returns what kubectl prints. The error has what kubectl says.
func (o Options) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := o.command(ctx, args...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("there is no program kubectl: install kubectl, and add its folder to PATH")
	case ctx.Err() != nil:
		err = errors.New("kubectl got no answer in time: check its context, and the network")
	case err != nil:
		lines := strings.Split(strings.TrimSpace(faults.String()), "\n") // before the last, there may be lines of its log
		err = fmt.Errorf("kubectl says: %s", lines[len(lines)-1])
	}
	return strings.TrimSpace(string(out)), err
}

// checkClusterRights asks the API server whether the user may create objects of each kind.
func checkClusterRights(ctx context.Context, o Options) []finding {
	if o.Namespace == "" {
		return nil
	}
	if _, err := o.kubectl(ctx, "get", "--raw", "/version"); err != nil {
		return []finding{{"cluster", err}}
	}
	return atOnce(clusterRights, func(i int) error {
		answer, err := o.kubectl(ctx, "auth", "can-i", "create", clusterRights[i])
		if strings.HasPrefix(answer, "no") { // kubectl fails, too
			return errors.New("the user of kubectl may not create these objects: ask an administrator for the right")
		}
		return err
	})
}

// checkClusterSecrets checks that the chart's Secrets exist and have their keys. kubectl prints no value.
func checkClusterSecrets(ctx context.Context, o Options) []finding {
	if o.Namespace == "" {
		return nil
	}
	const keysOf = `go-template={{range .items}}{{$name := .metadata.name}}{{range $key, $value := .data}}{{$name}}/{{$key}}{{"\n"}}{{end}}{{end}}`
	endings := slices.Sorted(maps.Keys(requiredKeys))
	get := []string{"get", "secret", "--ignore-not-found", "--output", keysOf}
	for _, ending := range endings {
		get = append(get, o.Release+"-"+ending)
	}
	keys, err := o.kubectl(ctx, get...)
	if err != nil {
		return []finding{{"cluster", err}}
	}
	var findings []finding
	for _, ending := range endings {
		name := o.Release + "-" + ending
		missing := slices.DeleteFunc(slices.Clone(requiredKeys[ending]), func(key string) bool {
			return slices.Contains(strings.Fields(keys), name+"/"+key)
		})
		var err error
		if len(missing) > 0 {
			err = fmt.Errorf("the Secret is missing, or has no %s: make it as docs/how-to/install.md says", strings.Join(missing, ", "))
		}
		findings = append(findings, finding{name, err})
	}
	return findings
}
