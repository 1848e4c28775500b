package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// release is one installation under test.
type release struct {
	folder    string // for files; removed at the end
	namespace string
	chart     string   // folder of the chart
	values    []string // files of values, the later ones win
	gateway   string   // namespace/name of the Gateway
	url       string   // of the API, through the Gateway
	sample    string   // image of the sample programs
	nodeExec  []string // a command that runs others on the node; empty: there is none
	cli       string   // the command line's program
	logs      string   // folder for the logs of pods after a failure

	apiKey, ingestKey, internalKey string
}

// commandTimeout bounds each command that waits for the cluster.
const commandTimeout = 10 * time.Minute

// command runs a program to its end and returns what it printed; in is its standard input.
func command(ctx context.Context, in string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(in)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// kubectl runs kubectl in the release's namespace; a failure ends the test.
func (r *release) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return r.apply(t, "", args...)
}

// apply runs kubectl with standard input.
func (r *release) apply(t testing.TB, in string, args ...string) string {
	t.Helper()
	out, err := r.tryKubectl(t.Context(), in, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *release) tryKubectl(ctx context.Context, in string, args ...string) (string, error) {
	return command(ctx, in, "kubectl", append([]string{"--namespace", r.namespace}, args...)...)
}

// helm runs helm in the release's namespace. A failure ends the test with the state of the pods.
func (r *release) helm(t testing.TB, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), "", "helm", append([]string{"--namespace", r.namespace}, args...)...)
	if err != nil {
		pods, _ := r.tryKubectl(context.Background(), "", "get", "pods")
		events, _ := r.tryKubectl(context.Background(), "", "get", "events", "--field-selector=type=Warning", "--sort-by=.lastTimestamp")
		t.Fatalf("%v\n%s\n%s\n%s", err, out, pods, events)
	}
	return out
}

// keepLogs writes the logs of the release's pods into files if the test failed, and shows the faults among their lines.
func (r *release) keepLogs(t *testing.T) {
	if !t.Failed() {
		return
	}
	folder := filepath.Join(r.logs, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Error(err)
		return
	}
	ctx := context.Background() // the test's own context has ended
	names, err := r.tryKubectl(ctx, "", "get", "pods", "-l", "app.kubernetes.io/instance=lectern", "-o", "name")
	if err != nil {
		t.Error(err)
		return
	}
	for _, name := range strings.Fields(names) {
		text, err := r.tryKubectl(ctx, "", "logs", name, "--all-containers", "--ignore-errors")
		// The log of a process that ended tells why it did.
		if before, previousErr := r.tryKubectl(ctx, "", "logs", name, "--all-containers", "--previous"); previousErr == nil {
			text = before + text
		}
		if err != nil {
			text += err.Error()
		}
		name = strings.TrimPrefix(name, "pod/")
		if err := os.WriteFile(filepath.Join(folder, name+".log"), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if faults := faultsIn(text); len(faults) > 0 {
			t.Logf("%s: %d lines of errors, the last of them:\n%s", name, len(faults), strings.Join(faults[max(0, len(faults)-5):], "\n"))
		}
	}
	t.Logf("the whole logs of the pods are in %s", folder)
}

// faultsIn returns the lines of a log that report an error or a panic, at most 400 bytes of each.
func faultsIn(log string) []string {
	var faults []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			faults = append(faults, strings.TrimSpace(line[:min(len(line), 400)]))
		}
	}
	return faults
}

// upgrade upgrades the release to its values and more, and waits until all pods are replaced.
func (r *release) upgrade(t testing.TB, more ...string) {
	t.Helper()
	args := []string{"upgrade", "--install", "lectern", r.chart, "--wait", "--timeout", "9m"}
	for _, file := range r.values {
		args = append(args, "--values", file)
	}
	r.helm(t, append(args, more...)...)
}

// awaitReplaced waits until the pods that an upgrade replaced are gone. helm does not wait for them. Until then they may
// answer with the old configuration, and their logs may vanish.
func (r *release) awaitReplaced(t testing.TB) {
	t.Helper()
	eventually(t, "the replaced pods are gone", func() error {
		for _, p := range r.pods(t, "") {
			if p.Metadata.DeletionTimestamp != nil {
				return fmt.Errorf("%s is terminating", p.Metadata.Name)
			}
		}
		return nil
	})
}

// manifest returns a file of testdata, or of path, with the release's names filled in.
func (r *release) manifest(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("SAMPLE_IMAGE", r.sample, "NAMESPACE", r.namespace).Replace(string(content))
}

// secret returns one value of a Secret.
func (r *release) secret(t testing.TB, name, key string) string {
	t.Helper()
	encoded := r.kubectl(t, "get", "secret", name, "-o", "go-template={{index .data \""+key+"\"}}")
	value, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatalf("secret %s, %s: %v", name, key, err)
	}
	return string(value)
}

// object decodes the JSON output of kubectl.
func object[T any](t testing.TB, r *release, args ...string) T {
	t.Helper()
	var o T
	if err := json.Unmarshal([]byte(r.kubectl(t, append(args, "-o", "json")...)), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// forward forwards a port of an object and returns its URL.
func (r *release) forward(t testing.TB, target string, port int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "kubectl", "--namespace", r.namespace, "port-forward", target, fmt.Sprintf(":%d", port))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("port-forward %s: %v", target, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	_, rest, _ := strings.Cut(line, "127.0.0.1:")
	local, _, _ := strings.Cut(rest, " ")
	return "http://127.0.0.1:" + local
}

// eventually waits until try succeeds, at most for [commandTimeout], and returns the time.
func eventually(t testing.TB, what string, try func() error) time.Duration {
	t.Helper()
	const limit = commandTimeout
	started := time.Now()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := try()
		if err == nil {
			return time.Since(started)
		}
		if time.Since(started) > limit {
			t.Fatalf("%s: not after %v: %v", what, limit, err)
		}
		select {
		case <-ticks.C:
		case <-t.Context().Done():
			t.Fatalf("%s: %v; %v", what, t.Context().Err(), err)
		}
	}
}

// get requests a path with a key and returns status and body.
func (r *release) get(ctx context.Context, path, key string, headers ...string) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

// components are the Deployments of the chart.
func components() []string {
	return []string{"entries", "embeddables", "experiments", "region", "proxy", "console", "edge", "internal", "operator"}
}

// pod has the fields of a pod that the tests read.
type pod struct {
	Metadata struct {
		Name              string
		Labels            map[string]string
		CreationTimestamp time.Time
		DeletionTimestamp *time.Time
	}
	Status struct {
		Conditions []struct {
			Type, Status       string
			LastTransitionTime time.Time
		}
		ContainerStatuses []struct {
			Name         string
			Ready        bool
			RestartCount int
			State        struct {
				Running *struct{ StartedAt time.Time }
			}
		}
	}
}

// ready reports whether the pod is ready, and since when.
func (p pod) ready() (bool, time.Time) {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" && p.Metadata.DeletionTimestamp == nil {
			return true, c.LastTransitionTime
		}
	}
	return false, time.Time{}
}

// pods returns the pods of one component, or of the whole release.
func (r *release) pods(t testing.TB, component string) []pod {
	t.Helper()
	selector := "app.kubernetes.io/instance=lectern"
	if component != "" {
		selector += ",app.kubernetes.io/component=" + component
	}
	return object[struct{ Items []pod }](t, r, "get", "pods", "-l", selector).Items
}
