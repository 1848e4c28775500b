package retention

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// now is the clock of the tests.
var now = time.Date(2030, 3, 31, 12, 0, 0, 5, time.UTC)

// entries is an entries service that can only purge.
type entries struct {
	URL string

	mu    sync.Mutex
	asked []string // "project updated_before cursor", in order
}

// startEntries starts an entries service. answer returns the status and the body for the nth request of a project,
// from 1.
func startEntries(t *testing.T, answer func(w http.ResponseWriter, project string, n int)) *entries {
	t.Helper()
	e := &entries{}
	times := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			UpdatedBefore string `json:"updated_before"`
			DryRun        *bool  `json:"dry_run"`
			Cursor        string `json:"cursor"`
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(text, &body) != nil || body.DryRun == nil || *body.DryRun {
			t.Errorf("%v: the body is %s", err, text)
		}
		project, isProject := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/purge"), "/internal/projects/")
		if r.Method != http.MethodPost || !isProject || !strings.HasSuffix(r.URL.Path, "/purge") || r.Header.Get("X-Api-Key") != "the-key" {
			t.Errorf("%s %s with the key %q", r.Method, r.URL.Path, r.Header.Get("X-Api-Key"))
		}
		e.mu.Lock()
		e.asked = append(e.asked, strings.TrimSpace(project+" "+body.UpdatedBefore+" "+body.Cursor))
		times[project]++
		n := times[project]
		e.mu.Unlock()
		answer(w, project, n)
	}))
	t.Cleanup(server.Close)
	e.URL = server.URL
	return e
}

// declare creates a Project whose condition Accepted has the status; "" means none yet.
func declare(t *testing.T, c *kubetest.Cluster, namespace, name, project string, days int32, accepted metav1.ConditionStatus) {
	t.Helper()
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: resource.ProjectSpec{
		ProjectID: project, Title: "One", RetentionDays: days,
	}}
	c.Create(t, p)
	if accepted == "" {
		return
	}
	p.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: accepted, ObservedGeneration: p.Generation, Reason: v1alpha1.ReasonDeclared, LastTransitionTime: metav1.Now(),
	}}
	if err := c.Client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// retain runs the job on c with the rights in the chart, and returns its log.
func retain(t *testing.T, c *kubetest.Cluster, e *entries, environ map[string]string) (log []map[string]any, err error) {
	t.Helper()
	return retainAt(t, c, e.URL, now, environ)
}

// retainAt does the same at another time.
func retainAt(t *testing.T, c *kubetest.Cluster, entriesURL string, now time.Time, environ map[string]string) (log []map[string]any, err error) {
	t.Helper()
	all := map[string]string{
		"WATCH_NAMESPACES": c.Namespace, "ENTRIES_INTERNAL_URL": entriesURL, "RETENTION_ADMIN_API_KEY": "the-key", "OTEL_TRACES_EXPORTER": "none",
	}
	for name, value := range environ {
		all[name] = value
	}
	var cfg Config
	if err := config.Load(&cfg, all); err != nil {
		t.Fatal(err)
	}
	output := &servicetest.Log{}
	cfg.Cluster.REST, cfg.LogOutput, cfg.Now = c.As(t, "retention", cfg.Cluster.WatchNamespaces...), output, func() time.Time { return now }
	err = Run(t.Context(), cfg)
	for line := range strings.Lines(output.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		log = append(log, fields)
	}
	if strings.Contains(output.String(), "the-key") {
		t.Errorf("the log holds the key:\n%s", output)
	}
	return log, err
}

// said returns the lines of a log with a message, each as the values of some fields.
func said(log []map[string]any, message string, fields ...string) []string {
	var lines []string
	for _, line := range log {
		if line["msg"] != message {
			continue
		}
		var values []string
		for _, f := range fields {
			values = append(values, fmt.Sprint(line[f]))
		}
		lines = append(lines, strings.Join(values, " "))
	}
	return lines
}

const (
	removedLine = "removed the old entries of a project"
	failedLine  = "could not remove all old entries of a project"
)

func TestRetention(t *testing.T) {
	c := kubetest.Start(t)
	second, unwatched := c.NewNamespace(t), c.NewNamespace(t)
	declare(t, c, c.Namespace, "busy", "pr_busy", 1, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "default", "pr_default", 0, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "failing", "pr_failing", 30, metav1.ConditionTrue)
	declare(t, c, second, "large", "pr_large", 36_500, metav1.ConditionTrue)
	declare(t, c, second, "late", "pr_large", 1, metav1.ConditionFalse)
	declare(t, c, c.Namespace, "new", "pr_new", 1, "")
	declare(t, c, unwatched, "elsewhere", "pr_elsewhere", 1, metav1.ConditionTrue)

	e := startEntries(t, func(w http.ResponseWriter, project string, n int) {
		switch {
		case project == "pr_busy" && n == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case project == "pr_busy" && n == 2:
			w.WriteHeader(http.StatusTooManyRequests)
		case project == "pr_busy" && n == 3:
			_, _ = io.WriteString(w, `{"entries":0,"events":0,"cursor":"c3"}`)
		case project == "pr_failing":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"code":"internal","message":"The server failed."}}`)
		case project == "pr_large" && n < 3:
			_, _ = fmt.Fprintf(w, `{"entries":10000,"events":2,"more":true,"cursor":"c%d"}`, n)
		default:
			_, _ = io.WriteString(w, `{"entries":3,"events":4,"more":false}`)
		}
	})
	began := time.Now()
	log, err := retain(t, c, e, map[string]string{"WATCH_NAMESPACES": c.Namespace + "," + second, "RETENTION_DAYS": "365"})
	if err == nil || err.Error() != "1 of 4 projects failed" {
		t.Errorf("the job ended with %v", err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("after Retry-After: 1 the job went on within %v", took)
	}
	want := []string{
		"pr_busy 2030-03-30T12:00:00Z", "pr_busy 2030-03-30T12:00:00Z", "pr_busy 2030-03-30T12:00:00Z", "pr_default 2029-03-31T12:00:00Z",
		"pr_failing 2030-03-01T12:00:00Z", "pr_large 1930-04-25T12:00:00Z", "pr_busy 2030-03-30T12:00:00Z c3", "pr_large 1930-04-25T12:00:00Z c1",
		"pr_large 1930-04-25T12:00:00Z c2",
	}
	if diff := gocmp.Diff(want, e.asked); diff != "" {
		t.Errorf("the entries service was asked (-want +got):\n%s", diff)
	}
	got := said(log, removedLine, "namespace", "name", "project_id", "days", "entries", "events")
	want = []string{
		c.Namespace + " default pr_default 365 3 4", c.Namespace + " busy pr_busy 1 3 4", second + " large pr_large 36500 20003 8",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if got := said(log, failedLine, "project_id", "error"); !slices.Equal(got, []string{"pr_failing The server failed. (internal, HTTP 500)"}) {
		t.Errorf("failed: %q", got)
	}
	got = said(log, "skipped a Project", "namespace", "name", "project_id", "reason")
	want = []string{
		second + " late pr_large it is in conflict: another Project came first", c.Namespace + " new pr_new the operator has not accepted it yet",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if got := said(log, "done", "projects", "failed", "entries", "events"); !slices.Equal(got, []string{"4 1 20009 16"}) {
		t.Errorf("done: %q", got)
	}
}

// Without a default, entries are kept for ever unless the Project sets a retention.
func TestRetentionWithoutDefault(t *testing.T) {
	c := kubetest.Start(t)
	declare(t, c, c.Namespace, "one", "pr_1", 0, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "two", "pr_2", 7, metav1.ConditionTrue)
	e := startEntries(t, func(w http.ResponseWriter, _ string, _ int) {
		_, _ = io.WriteString(w, `{"entries":0,"events":0,"more":false}`)
	})
	if _, err := retain(t, c, e, nil); err != nil {
		t.Error(err)
	}
	if want := []string{"pr_2 2030-03-24T12:00:00Z"}; !slices.Equal(e.asked, want) {
		t.Errorf("the entries service was asked %q; want %q", e.asked, want)
	}
}

// A key that is refused for one project is refused for all.
func TestRetentionKeyRefused(t *testing.T) {
	c := kubetest.Start(t)
	declare(t, c, c.Namespace, "one", "pr_1", 1, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "two", "pr_2", 1, metav1.ConditionTrue)
	e := startEntries(t, func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(http.StatusUnauthorized) })
	_, err := retain(t, c, e, nil)
	if err == nil || !strings.Contains(err.Error(), "does not accept the key RETENTION_ADMIN_API_KEY; allowed: a key of its ADMIN_API_KEYS") || len(e.asked) != 1 {
		t.Errorf("%v after %d requests", err, len(e.asked))
	}
}

// A hanging service delays the job by RETENTION_TIMEOUT at most.
func TestRetentionTimeout(t *testing.T) {
	c := kubetest.Start(t)
	declare(t, c, c.Namespace, "one", "pr_1", 1, metav1.ConditionTrue)
	declare(t, c, c.Namespace, "two", "pr_2", 1, metav1.ConditionTrue)
	over := make(chan struct{})
	e := startEntries(t, func(http.ResponseWriter, string, int) { <-over })
	t.Cleanup(func() { close(over) })
	began := time.Now()
	log, err := retain(t, c, e, map[string]string{"RETENTION_TIMEOUT": "1s"})
	if took := time.Since(began); err == nil || err.Error() != "2 of 2 projects failed" || took > 5*time.Minute {
		t.Errorf("the job ended after %v with %v", took, err)
	}
	if got := said(log, failedLine, "project_id", "error"); !slices.Equal(got, []string{"pr_1 RETENTION_TIMEOUT (1s) is over"}) {
		t.Errorf("failed: %q", got)
	}
	if got := said(log, "the time is over: the job did not finish some projects", "projects"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("without a turn: %q", got)
	}
}

// The job may list Projects, and nothing else.
func TestRetentionRole(t *testing.T) {
	c := kubetest.Start(t)
	other := c.NewNamespace(t)
	user := c.As(t, "retention", c.Namespace).Impersonate.UserName
	for _, tt := range []struct {
		verb, group, resource, namespace string
		want                             bool
	}{
		{"list", "lectern.dev", "projects", c.Namespace, true},
		{"list", "lectern.dev", "projects", other, true},
		{"list", "lectern.dev", "projects", "", true},
		{"patch", "lectern.dev", "projects", c.Namespace, false},
		{"list", "lectern.dev", "apikeys", c.Namespace, false},
		{"get", "", "secrets", c.Namespace, false},
		{"list", "", "secrets", c.Namespace, false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: tt.verb, Group: tt.group, Resource: tt.resource, Namespace: tt.namespace,
		}}}
		if err := c.Client.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != tt.want {
			t.Errorf("%s %s in %q: allowed is %v", tt.verb, tt.resource, cmp.Or(tt.namespace, "the cluster"), review.Status.Allowed)
		}
	}
}

func TestConfig(t *testing.T) {
	var cfg Config
	err := config.Load(&cfg, map[string]string{
		"ENTRIES_INTERNAL_URL": "entries:9090", "EMBEDDABLES_INTERNAL_URL": "ftp://e", "RETENTION_DAYS": "36501", "RETENTION_TIMEOUT": "0s",
	})
	for _, want := range []string{"RETENTION_ADMIN_API_KEY", `ENTRIES_INTERNAL_URL`, `EMBEDDABLES_INTERNAL_URL`, "0 to 36500", "1s or more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the fault %q does not say %s", err, want)
		}
	}
	cfg = Config{}
	err = config.Load(&cfg, map[string]string{"ENTRIES_INTERNAL_URL": "entries:9090", "RETENTION_ADMIN_API_KEY": "k"})
	if err == nil || strings.Contains(err.Error(), "EMBEDDABLES_INTERNAL_URL") {
		t.Errorf("the fault %q is about a setting that is not set", err)
	}
}
