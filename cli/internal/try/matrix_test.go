package try_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/routestest"
)

// matrixAnswer is the answer to a row of the matrix.
type matrixAnswer struct {
	row    routestest.Row
	id     string // the request id, as in logs
	status int
	body   string
}

// askMatrix sends each request of the matrix to the running edge.
func askMatrix(t *testing.T, environ map[string]string) []matrixAnswer {
	t.Helper()
	rows, err := routestest.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{
		routestest.NoKey: "", routestest.APIKey: environ["LECTERN_API_KEY"], routestest.InternalKey: environ["LECTERN_INTERNAL_API_KEY"],
	}
	host := strings.TrimPrefix(environ["LECTERN_URL"], "http://")
	answers := make([]matrixAnswer, len(rows))
	for i, row := range rows {
		answers[i] = askRow(t, row, host, keys[row.Key], fmt.Sprintf("matrix-%d", row.Line))
	}
	return answers
}

func askRow(t *testing.T, row routestest.Row, host, key, id string) matrixAnswer {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	resp, err := row.Ask(conn, host, key, id)
	if err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	return matrixAnswer{row, id, resp.StatusCode, string(body)}
}

// checkMatrix holds what was answered, and the logs of the run, to the matrix.
func checkMatrix(t *testing.T, answers []matrixAnswer, folder string) {
	var seen map[string][]routes.Service
	var running []routes.Service
	eventually.True(t, "each request is in the log of a service", func() bool { // a log has a request after its answer
		seen, running = servicesByRequest(t, folder)
		return !slices.ContainsFunc(answers, func(a matrixAnswer) bool { return slices.Contains(running, a.row.Service) && seen[a.id] == nil })
	})
	for _, a := range answers {
		want, status := a.row.Service, a.row.Status
		if want != "" && !slices.Contains(running, want) {
			want, status = "", 404 // what does not run here has no route
		}
		if a.status != status {
			t.Errorf("%s: %d, want %d: %.300s", a.row, a.status, status, a.body)
		}
		if got := seen[a.id]; want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []routes.Service{want}) {
			t.Errorf("%s: went to %q, want %q", a.row, got, want)
		}
		var refusal struct {
			Error struct{ Code, Message string }
		}
		if status >= 400 && (json.Unmarshal([]byte(a.body), &refusal) != nil || refusal.Error.Code == "" || refusal.Error.Message == "") {
			t.Errorf("%s: no error of the API: %.300s", a.row, a.body)
		}
		if want == "" && refusal.Error.Code != "route_not_found" {
			t.Errorf("%s: %q, want route_not_found", a.row, refusal.Error.Code)
		}
	}
}

// servicesByRequest returns which services' logs have a request, by its id, and which services run. The
// proxy's record of a request is called audit.
func servicesByRequest(t *testing.T, folder string) (seen map[string][]routes.Service, running []routes.Service) {
	t.Helper()
	seen = map[string][]routes.Service{}
	for _, s := range []routes.Service{routes.Entries, routes.Embeddables, routes.Experiments, routes.Region, routes.Proxy, routes.Console} {
		log, err := os.ReadFile(filepath.Join(folder, "logs", string(s)+".log"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, s)
		for line := range bytes.Lines(log) {
			var access struct {
				Msg string `json:"msg"`
				ID  string `json:"request_id"`
			}
			if json.Unmarshal(line, &access) == nil && (access.Msg == "request" || access.Msg == "audit") {
				seen[access.ID] = append(seen[access.ID], s)
			}
		}
	}
	return seen, running
}
