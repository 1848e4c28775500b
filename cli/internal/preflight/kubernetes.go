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

// kubectl runs kubectl in the namespace, with the user's current context. The error has what kubectl says.
func (in *inputs) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace=" + in.Namespace}, args...)...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("there is no program kubectl: install kubectl, and add its folder to PATH")
	case ctx.Err() != nil:
		err = errors.New("kubectl got no answer in time: check its context, and the network")
	case err != nil:
		err = fmt.Errorf("kubectl says: %s", strings.Join(strings.Fields(faults.String()), " "))
	}
	return strings.TrimSpace(string(out)), err
}

// checkAPIServer checks that the API server answers, for the checks that follow.
func (in *inputs) checkAPIServer(ctx context.Context) []finding {
	if in.Namespace == "" {
		return nil
	}
	_, err := in.kubectl(ctx, "get", "--raw", "/version")
	in.clusterAnswers = err == nil
	return []finding{{"cluster", err}}
}

// checkClusterRights asks the API server whether the user may create objects of each kind.
func (in *inputs) checkClusterRights(ctx context.Context) []finding {
	if !in.clusterAnswers {
		return nil
	}
	return atOnce(clusterRights, func(i int) error {
		answer, err := in.kubectl(ctx, "auth", "can-i", "create", clusterRights[i])
		if strings.HasPrefix(answer, "no") { // kubectl fails, too
			return errors.New("the user of kubectl may not create these objects: ask an administrator for the right")
		}
		return err
	})
}

// checkClusterSecrets checks that the chart's Secrets exist and have their keys. kubectl prints no value.
func (in *inputs) checkClusterSecrets(ctx context.Context) []finding {
	if !in.clusterAnswers {
		return nil
	}
	endings := slices.Sorted(maps.Keys(requiredKeys))
	var names []string
	for _, ending := range endings {
		names = append(names, in.Release+"-"+ending)
	}
	return atOnce(names, func(i int) error {
		keys, err := in.kubectl(ctx, "get", "secret", names[i], "--output", `go-template={{range $key, $value := .data}}{{$key}}{{"\n"}}{{end}}`)
		if err != nil && !strings.Contains(err.Error(), "NotFound") {
			return err
		}
		return missingKeys(endings[i], strings.Fields(keys))
	})
}
