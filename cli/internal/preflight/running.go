package preflight

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// object has the fields of a Deployment, a Pod, an Event and of Lectern's own kinds that tell why something is not ready.
type object struct {
	Kind     string
	Metadata struct {
		Namespace, Name   string
		Generation        int64
		DeletionTimestamp string
	}
	Spec struct {
		Containers []struct {
			Name  string
			Ports []struct {
				Name          string
				ContainerPort int
			}
		}
	}
	Status struct {
		Phase                                    string
		Conditions                               []condition
		InitContainerStatuses, ContainerStatuses []containerStatus
	}
	Message string // of an Event
}

type condition struct {
	Type, Status, Reason, Message string
	ObservedGeneration            int64
}

type containerStatus struct {
	Name             string
	State, LastState struct {
		Waiting    *struct{ Reason, Message string }
		Terminated *struct{ ExitCode int }
		Running    *struct{}
	}
}

// get lists objects by kubectl get.
func (o Options) get(ctx context.Context, args ...string) ([]object, error) {
	out, err := o.kubectl(ctx, append([]string{"get", "--output=json"}, args...)...)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("kubectl printed no list in JSON: %w", err)
	}
	return list.Items, nil
}

// checkPods says what keeps each pod of the chart from being ready, and which checks of /readyz fail in pods that run.
func checkPods(ctx context.Context, o Options) []finding {
	all, err := o.get(ctx, "deployments.apps,pods", "--selector=app.kubernetes.io/part-of=lectern")
	if err != nil {
		return []finding{{"cluster", err}}
	}
	all = slices.DeleteFunc(all, func(p object) bool { return p.Metadata.DeletionTimestamp != "" || p.Status.Phase == "Succeeded" })
	return atOnce(names(all), func(i int) error {
		if all[i].Kind == "Deployment" {
			return missingPods(all[i])
		}
		return o.podFault(ctx, all[i])
	})
}

// names returns the kinds and names of objects.
func names(all []object) (subjects []string) {
	for _, o := range all {
		subjects = append(subjects, strings.ToLower(o.Kind)+"/"+o.Metadata.Name)
	}
	return subjects
}

// missingPods says why the API server refuses the pods of a Deployment, such as for a quota. missingPods returns nil if the
// API server does not.
func missingPods(deployment object) error {
	for _, c := range deployment.Status.Conditions {
		if c.Type == "ReplicaFailure" && c.Status == "True" {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
	return nil
}

// podFault says why a pod is not ready, or nil. The sources are, in this order, the states of its containers with their last
// words, the pod's conditions, its /readyz, and its last warning.
func (o Options) podFault(ctx context.Context, pod object) error {
	name, runs := pod.Metadata.Name, false
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		state := c.State
		runs = runs || state.Running != nil
		switch {
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			return fmt.Errorf("%s ended with exit code %d: %s", c.Name, state.Terminated.ExitCode, o.lastWords(ctx, name, c.Name))
		case state.Waiting != nil && c.LastState.Terminated != nil:
			return fmt.Errorf("%s: %s, exit code %d: %s", c.Name, state.Waiting.Reason, c.LastState.Terminated.ExitCode, o.lastWords(ctx, name, c.Name, "--previous"))
		case state.Waiting != nil && state.Waiting.Message != "":
			return fmt.Errorf("%s: %s: %s", c.Name, state.Waiting.Reason, state.Waiting.Message)
		}
	}
	ready := false
	for _, c := range pod.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status != "True" {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		ready = ready || c.Type == "Ready" && c.Status == "True"
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "internal" && runs {
				return o.readyz(ctx, name, p.ContainerPort)
			}
		}
	}
	if ready {
		return nil
	}
	warnings, err := o.get(ctx, "events", "--field-selector=type=Warning,involvedObject.name="+name, "--sort-by=.metadata.creationTimestamp")
	switch {
	case err != nil:
		return err
	case len(warnings) > 0:
		return errors.New(warnings[len(warnings)-1].Message)
	}
	return errors.New("the pod is not ready yet, and has no warning: look again in a minute")
}

// lastWords returns the last line of a container's log.
func (o Options) lastWords(ctx context.Context, pod, container string, args ...string) string {
	out, err := o.kubectl(ctx, append([]string{"logs", pod, "--container=" + container, "--tail=1"}, args...)...)
	if err != nil {
		return err.Error()
	}
	return cmp.Or(out, "the log is empty")
}

// readyz asks a pod for /readyz through a port of this machine, because the API server's own proxy drops the body of a 503.
// The error has the failing checks and their causes.
func (o Options) readyz(ctx context.Context, pod string, port int) error {
	ctx, cancel := context.WithCancel(ctx)
	cmd := o.command(ctx, "port-forward", "pod/"+pod, fmt.Sprintf(":%d", port))
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // killed, so Wait always fails
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(line, "Forwarding from ")
	if address, _, _ = strings.Cut(address, " "); err != nil || !ok {
		return errors.New("kubectl port-forward does not reach the pod: ask for the right to create pods/portforward")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("/readyz does not answer: %w", err)
	}
	defer resp.Body.Close()
	var body struct {
		Status string
		Checks map[string]string
		Causes map[string]string
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return fmt.Errorf("/readyz does not answer in JSON: %w", err)
	}
	var failing []string
	for _, check := range slices.Sorted(maps.Keys(body.Causes)) {
		failing = append(failing, check+": "+body.Causes[check])
	}
	if len(failing) == 0 && resp.StatusCode == http.StatusOK {
		return nil
	}
	if resp.StatusCode == http.StatusOK {
		body.Status = "the pod is ready, although a check fails" // one that is not required
	}
	return fmt.Errorf("%s: %s", body.Status, strings.Join(failing, "; "))
}

// checkObjects says which Projects, APIKeys, Credentials and ProxyEndpoints are not ready. checkObjects lists those of all
// namespaces, or of the release's namespace if the user may not list all.
func checkObjects(ctx context.Context, o Options) []finding {
	all, err := o.get(ctx, "lectern", "--all-namespaces")
	if err != nil {
		all, err = o.get(ctx, "lectern")
	}
	if err != nil {
		return []finding{{"cluster", err}}
	}
	var findings []finding
	for _, object := range all {
		subject := object.Kind + " " + object.Metadata.Namespace + "/" + object.Metadata.Name
		err := errors.New("there is no status: no operator runs, or watchNamespaces does not have the namespace")
		for _, c := range object.Status.Conditions {
			switch {
			case c.Type != "Ready":
			case c.ObservedGeneration != object.Metadata.Generation:
				err = errors.New("the operator has not seen the last change: no operator runs, or watchNamespaces does not have the namespace")
			case c.Status == "True":
				err = nil
			default:
				err = fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
		findings = append(findings, finding{subject, err})
	}
	return findings
}
