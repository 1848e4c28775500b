package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/routestest"
)

// valuesOf returns the values of a way to write routes.
func valuesOf(flavour string) []string {
	way := map[string]struct{ mode, block string }{
		"edge": {"edge", "gateway"}, "edge-ingress": {"edge", "ingress"},
		"gateway": {"gateway", "gateway"}, "traefik": {"gateway", "traefik"}, "nginx": {"gateway", "nginx"},
	}[flavour]
	values := []string{"--set", "routing.mode=" + way.mode, "--set", "routing.ingress.className=traefik"}
	for _, block := range []string{"gateway", "ingress", "traefik", "nginx"} {
		values = append(values, "--set", fmt.Sprintf("routing.%s.enabled=%t", block, block == way.block))
	}
	return values
}

// outcome is the service that received a request, and the answer.
type outcome struct {
	service string // "-": no service
	status  int
}

// testRoutes checks the matrix with some ways to write routes, all of one mode, except for the differences in
// testdata/differences.txt, which has their reasons.
func (r *release) testRoutes(t *testing.T, flavours ...string) {
	rows, err := routestest.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	listed := readDifferences(t, flavours)
	for i, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			host := flavour + ".example.test"
			r.upgrade(t, append(valuesOf(flavour), "--set", "routing.hosts={"+host+"}")...)
			r.awaitReplaced(t)
			r.awaitRoute(t, host)
			if i == 0 { // what the console needs from a mode; the matrix has its paths
				t.Run("console", func(t *testing.T) { r.testConsole(t, host) })
			}
			began := time.Now().Add(-time.Second)
			got := make([]outcome, len(rows))
			for i, row := range rows {
				got[i].status = r.askRow(t, row, host, fmt.Sprintf("%s-%d-%d", flavour, began.Unix(), i))
			}
			// Lines reach the logs some time after their answers.
			last := fmt.Sprintf("%s-%d-last", flavour, began.Unix())
			r.askRow(t, rows[0], host, last)
			var seen map[string][]string
			eventually(t, "the logs", func() error {
				seen = r.seenBy(t, began)
				missing := 0
				for i, row := range rows {
					id := fmt.Sprintf("%s-%d-%d", flavour, began.Unix(), i)
					_, differs := listed[strings.Join([]string{flavour, row.Key, row.Method, row.Path}, " ")]
					if row.Service != "" && !differs && len(seen[id]) == 0 {
						missing++
					}
				}
				if missing > 0 || len(seen[last]) == 0 {
					return fmt.Errorf("%d requests are in none", missing)
				}
				return nil
			})
			for i, row := range rows {
				got[i].service = "-"
				if by := seen[fmt.Sprintf("%s-%d-%d", flavour, began.Unix(), i)]; len(by) > 0 {
					got[i].service = strings.Join(by, "+")
				}
				want := outcome{"-", row.Status}
				if row.Service != "" {
					want.service = string(row.Service)
				}
				key := strings.Join([]string{flavour, row.Key, row.Method, row.Path}, " ")
				if other, ok := listed[key]; ok {
					want = other
					delete(listed, key)
				}
				if got[i] != want {
					t.Errorf("%s: %s %d; want %s %d", row, got[i].service, got[i].status, want.service, want.status)
				}
			}
		})
	}
	for key := range listed {
		t.Errorf("differences.txt: %s: no such row", key)
	}
}

// awaitRoute waits until the host has a route.
func (r *release) awaitRoute(t *testing.T, host string) {
	t.Helper()
	for _, path := range []string{"/projects/pr_demo/entries", "/projects/pr_demo/embeddables", "/projects/pr_demo/experiments", "/docs", "/proxy", "/console/"} {
		row := routestest.Row{Key: routestest.APIKey, Method: "GET", Path: path}
		eventually(t, host+path, func() error {
			if status := r.askRow(t, row, host, "await"); status == 404 || status >= 500 {
				return fmt.Errorf("%d", status)
			}
			return nil
		})
	}
}

func (r *release) askRow(t *testing.T, row routestest.Row, host, id string) int {
	t.Helper()
	address := strings.TrimPrefix(r.url, "http://")
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "80"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	key := map[string]string{routestest.APIKey: r.apiKey, routestest.InternalKey: r.internalKey}[row.Key]
	resp, err := row.Ask(conn, host, key, id)
	if err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	return resp.StatusCode
}

// seenBy returns the services whose access logs have a request, by its id.
func (r *release) seenBy(t *testing.T, since time.Time) map[string][]string {
	t.Helper()
	seen := map[string][]string{}
	for _, service := range []routes.Service{routes.Entries, routes.Embeddables, routes.Experiments, routes.Region, routes.Proxy, routes.Console} {
		var log string
		eventually(t, "the logs of "+string(service), func() (err error) { // a pod that was replaced may go meanwhile
			log, err = r.tryKubectl(t.Context(), "", "logs", "-l", "app.kubernetes.io/instance=lectern,app.kubernetes.io/component="+string(service),
				"--tail=-1", "--since-time="+since.UTC().Format(time.RFC3339))
			return err
		})
		for line := range bytes.Lines([]byte(log)) {
			var access struct {
				Msg string `json:"msg"`
				ID  string `json:"request_id"`
			}
			if json.Unmarshal(line, &access) == nil && (access.Msg == "request" || access.Msg == "audit") && !slices.Contains(seen[access.ID], string(service)) {
				seen[access.ID] = append(seen[access.ID], string(service))
			}
		}
	}
	return seen
}

// readDifferences returns the differences of flavours from the matrix, by flavour, key, method and path. The flavour * means all.
func readDifferences(t *testing.T, flavours []string) map[string]outcome {
	t.Helper()
	file, err := os.Open("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listed := map[string]outcome{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		var o outcome
		if len(fields) != 6 {
			t.Fatalf("differences.txt: %q: want flavour, key, method, path, service, status", lines.Text())
		}
		o.service = fields[4]
		if _, err := fmt.Sscan(fields[5], &o.status); err != nil {
			t.Fatalf("differences.txt: %q: %v", lines.Text(), err)
		}
		for _, flavour := range flavours {
			if fields[0] == "*" || fields[0] == flavour {
				listed[strings.Join(append([]string{flavour}, fields[1:4]...), " ")] = o
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return listed
}
