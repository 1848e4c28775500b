package operator

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
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
	address := needs.Address(t)
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
