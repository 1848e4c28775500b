package operator

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// process is an operator in a process of its own.
type process struct {
	URL string

	cmd  *exec.Cmd
	log  *servicetest.Log
	dead chan struct{}
}

// kubeconfig writes a configuration as a kubeconfig, and returns its path.
func kubeconfig(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	all := clientcmdapi.NewConfig()
	all.Clusters["test"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	all.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken}
	all.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	all.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// launch starts a built operator on c, which runs until t ends.
func launch(t testing.TB, binary, kubeconfig string, c *kubetest.Cluster, environ map[string]string) *process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	p := &process{URL: "http://" + address, log: &servicetest.Log{}, dead: make(chan struct{}), cmd: exec.Command(binary, "serve")}
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig, "WATCH_NAMESPACES=" + c.Namespace,
		"LEADER_ELECTION=false", "LISTEN_INTERNAL=" + address, "OTEL_TRACES_EXPORTER=none",
	}
	for name, value := range environ {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.dead); _ = p.cmd.Wait() }() // one that is killed ends with an error
	t.Cleanup(p.kill)
	return p
}

// kill ends the process at once, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // gone is gone
	<-p.dead
}

// ready200 reports whether /readyz at url returns 200. A server that does not listen yet is not ready.
func ready200(url string) bool {
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// memory returns the process's resident memory now and at its peak, in bytes.
func (p *process) memory(t testing.TB) (now, peak int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			now = n << 10
		case name == "VmHWM":
			peak = n << 10
		}
	}
	return now, peak
}

// asked returns the number of requests of the process to the API server, by method and by status.
func (p *process) asked(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(metricsOf(t, p.URL)) {
		rest, ok := strings.CutPrefix(line, "rest_client_requests_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(strings.TrimSpace(rest), "} ")
		_, method, _ := strings.Cut(labels, `method="`)
		method, _, _ = strings.Cut(method, `"`)
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		counts[method] += int(n)
	}
	return counts
}

// An operator that is killed again and again during its work loses no key and rotates no key twice. It leaves no Secret
// without a working key.
func TestLongOperatorKilled(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	c := kubetest.Start(t)
	declare(t, c)
	keys := authtest.New(t, redistest.Start(t).URL)
	binary, file := servicetest.Build(t, "../cmd/operator"), kubeconfig(t, c.Config())
	environ := keyEnviron(keys)
	const objects, rounds = 20, 5
	var all []*v1alpha1.APIKey
	for i := range objects {
		all = append(all, newKey(fmt.Sprintf("reports-%d", i)))
		c.Create(t, all[i])
	}
	conn := pgtest.Connect(t, keys.Config.MigrateURL.Reveal())
	works := func(k *v1alpha1.APIKey) (held, active bool) {
		key := keyIn(t, c, k)
		if key == "" {
			return false, false
		}
		err := conn.QueryRow(t.Context(), `SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
			FROM api_keys WHERE key_hash = sha256($1::bytea)`, []byte(key)).Scan(&active)
		if err != nil {
			t.Fatalf("%s holds a key that the database does not know: %v", k.Name, err)
		}
		return true, active
	}
	broken := 0
	for round := range rounds {
		p := launch(t, binary, file, c, environ)
		eventually.True(t, "the operator is at work", func() bool { return ready200(p.URL) })
		time.Sleep(rand.N(400 * time.Millisecond)) // a sleep, because a crash waits for no state
		p.kill()
		for _, k := range all {
			if held, active := works(k); held && !active {
				t.Errorf("round %d: the Secret of %s holds a key that does not work", round, k.Name)
			}
		}
		var lost int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM api_keys WHERE delivered_at IS NULL AND revoked_at IS NULL`).Scan(&lost); err != nil {
			t.Fatal(err)
		}
		broken += lost
		for _, k := range all {
			kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, fmt.Sprint(round)))
		}
	}
	last := launch(t, binary, file, c, environ)
	for _, k := range all {
		eventually.True(t, k.Name+" is rotated for the last time", func() bool {
			c.AwaitReady(t, k, v1alpha1.ReasonIssued)
			return k.Status.RotateHandled == fmt.Sprint(rounds-1)
		})
		if held, active := works(k); !held || !active {
			t.Errorf("the Secret of %s holds a key: %v, which works: %v", k.Name, held, active)
		}
	}
	var lost, doubled int
	err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM api_keys WHERE delivered_at IS NULL AND revoked_at IS NULL),
		(SELECT count(*) FROM (SELECT FROM api_keys WHERE delivered_at IS NOT NULL GROUP BY owner_id, owner_request HAVING count(*) > 1) d)`).Scan(&lost, &doubled)
	if err != nil || lost != 0 || doubled != 0 {
		t.Errorf("%d keys that nobody has, %d rotations done twice, %v\n%s", lost, doubled, err, last.log.Tail(4000))
	}
	t.Logf("killed %d times, with %d keys minted and not noted as delivered", rounds, broken)
}
