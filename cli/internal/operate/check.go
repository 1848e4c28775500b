// Package operate has the commands for operators of an installation.
package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/routes"
)

// Check is lectern check.
type Check struct {
	shell.APIFlags
	Service        map[string]string `help:"The address of one service, such as entries=http://lectern-entries. The command then calls only the operations of the given services. Repeatable." placeholder:"NAME=URL"`
	InternalAPIKey string            `env:"LECTERN_INTERNAL_API_KEY" help:"An internal key, for the operation that needs one. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
	Timeout        time.Duration     `default:"10s" help:"How long an answer may take. Default: ${default}." placeholder:"DURATION"`
	shell.OutputFlags
}

// Help describes the expected answers, with examples.
func (Check) Help() string {
	return `The command calls each operation and the web console once. It only reads. Operations that read one record are asked for the first record of their list. If the list is empty or refused, the command asks for a record that does not exist, and expects 404. Without a key, it also accepts 401 where a key may be needed, so it only checks that operations ask for one. The exit code is 1 if an answer is not the one in the API's description.

Examples:

	lectern check --env-file .lectern/demo.env
	lectern check --project pr_demo --service entries=http://lectern-entries --service region=http://lectern-region`
}

// calledOperation is the outcome of one operation.
type calledOperation struct {
	Service      routes.Service `json:"service"`
	Operation    string         `json:"operation"`
	Status       int            `json:"status"` // 0: there was no answer
	Milliseconds int64          `json:"milliseconds"`
	Outcome      string         `json:"outcome"` // ok, or what is wrong
}

// Run calls and prints one line an operation.
func (c *Check) Run(s *shell.Session) error {
	targets := map[routes.Service]string{}
	for name, at := range c.Service {
		if !slices.ContainsFunc(routes.Outside(), func(r routes.Route) bool { return string(r.Service) == name }) {
			var names []string
			for _, r := range routes.Outside() {
				names = append(names, string(r.Service))
			}
			slices.Sort(names)
			return shell.Usagef("--service was given with the name %q; allowed: %s", name, strings.Join(slices.Compact(names), ", "))
		}
		targets[routes.Service(name)] = at
	}
	if len(targets) == 0 {
		for _, r := range routes.Outside() {
			targets[r.Service] = c.URL
		}
	}
	for _, at := range targets {
		if u, err := url.Parse(at); err != nil || u.Host == "" {
			return shell.Usagef("--service was given with the address %q; allowed: a URL such as http://127.0.0.1:8080", at)
		}
	}
	key, err := c.Key()
	if err != nil {
		return err
	}
	k := checker{command: c, key: key, http: &http.Client{Timeout: c.Timeout}, known: map[string]string{"projectId": c.Project}}
	calls, failed := []calledOperation{}, 0
	for _, r := range routes.Outside() {
		at, ok := targets[r.Service]
		if !ok {
			continue
		}
		started := s.Now()
		status, err := k.call(s.Context, r, strings.TrimSuffix(at, "/"))
		if s.Context.Err() != nil {
			return s.Context.Err()
		}
		outcome := "ok"
		if err != nil {
			outcome = "failed: " + shell.OneLine(err)
			failed++
		}
		calls = append(calls, calledOperation{r.Service, r.Operation, status, s.Now().Sub(started).Milliseconds(), outcome})
	}
	if err := c.PrintValue(s, calls); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("operations that did not answer as described: %d", failed)
	}
	return nil
}

// checker calls operations, and keeps the identifiers in their answers for later ones.
type checker struct {
	command *Check
	key     string
	http    *http.Client
	known   map[string]string // values of the variables of paths
}

// firstOf maps fields of a list's first record to variables of later paths.
func firstOf(operation string) (variable, field string) {
	switch operation {
	case "listEntries":
		return "entryId", "entry_id"
	case "listEmbeddables":
		return "embeddableId", "embeddable_id"
	case "listEmbeddableVersions":
		return "versionNumber", "version_number"
	case "listExperiments":
		return "experimentId", "experimentId"
	}
	return "", ""
}

// longestAnswer is the longest answer that the command reads into memory, in bytes. It is far above a page of any list. A
// compressed answer may be a thousand times as long as what was sent.
const longestAnswer = 64 << 20

// call calls one operation and returns the status of its answer, with an error if it is not the expected one.
func (k *checker) call(ctx context.Context, r routes.Route, at string) (int, error) {
	path, known := k.path(r)
	method, body := http.MethodGet, ""
	if !r.Allows(method) {
		request, err := json.Marshal(map[string]string{"projectId": k.command.Project})
		if err != nil {
			return 0, err
		}
		method, body = http.MethodPost, string(request)
	}
	req, err := http.NewRequestWithContext(ctx, method, at+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", "lectern-cli")
	key := k.key
	if r.Auth == routes.InternalKey {
		key = k.command.InternalAPIKey
	}
	if key != "" && r.Auth != routes.None && r.Auth != routes.Endpoint {
		req.Header.Set("X-Api-Key", key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer+1))
	if err != nil {
		return resp.StatusCode, fmt.Errorf("read the answer: %w", err)
	}
	if len(answer) > longestAnswer {
		return resp.StatusCode, fmt.Errorf("the answer is longer than %d MiB", longestAnswer>>20)
	}
	k.remember(r, resp.StatusCode, answer)
	return resp.StatusCode, k.judge(r, resp.StatusCode, answer, key != "", known)
}

// path fills in the template of r, and reports whether all of its records are known to exist.
func (k *checker) path(r routes.Route) (path string, known bool) {
	known = true
	segments := strings.Split(r.Template, "/")
	for i, segment := range segments {
		name, ok := strings.CutPrefix(segment, "{")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		value, ok := k.known[name]
		switch {
		case ok:
		case name == "versionNumber":
			value, known = "1", false
		default:
			value, known = "none", false
		}
		segments[i] = url.PathEscape(value)
	}
	path = strings.Join(segments, "/")
	switch r.Operation {
	case "countEntries":
		path += "?interval=all"
	case "getEntriesFunnel", "getEntriesAnswers":
		path += "?embeddable_id=none" // the embeddables come later, and any id is answered
	}
	return path, known && r.Operation != "getProject" && r.Operation != "getReferenceAsset"
}

// remember stores the identifier of a list's first record.
func (k *checker) remember(r routes.Route, status int, answer []byte) {
	variable, field := firstOf(r.Operation)
	if variable == "" || status != http.StatusOK {
		return
	}
	var records []map[string]any
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.UseNumber()
	if decoder.Decode(&records) != nil || len(records) == 0 {
		return
	}
	if value, ok := records[0][field]; ok {
		k.known[variable] = fmt.Sprint(value)
	}
}

// judge returns an error unless the description allows the answer to the request.
func (k *checker) judge(r routes.Route, status int, answer []byte, keyed, known bool) error {
	if status == http.StatusOK {
		if (r.Auth == routes.APIKey || r.Auth == routes.InternalKey) && !keyed {
			return errors.New("answered without a key")
		}
		return nil
	}
	var refusal struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(answer, &refusal) != nil || refusal.Error.Code == "" {
		return fmt.Errorf("not an answer of this API: %.100q", answer)
	}
	code := refusal.Error.Code
	switch {
	case status == http.StatusUnauthorized && !keyed && r.Auth != routes.None && r.Auth != routes.Endpoint:
		return nil
	case status == http.StatusNotFound && !known && (code != "route_not_found" || r.Operation == "getReferenceAsset"):
		return nil
	case status == http.StatusBadRequest && r.Auth == routes.Endpoint:
		return nil // it was given no target
	}
	return fmt.Errorf("%s: %s", code, refusal.Error.Message)
}
