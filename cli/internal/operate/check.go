// Package operate has the commands for operators of an installation: check, databases and migrate-to-citus.
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

// Check is the command lectern check, which calls each public operation once and reports unexpected answers. With
// --service, the command only calls the operations of these services. With --pre, the command checks what
// an installation needs instead. With --cluster, the command says what keeps an installation from being ready.
type Check struct {
	shell.ServerFlags
	Project        string            `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id. Needed without --pre and --cluster." placeholder:"ID"`
	Service        map[string]string `help:"The address of one service, such as entries=http://lectern-entries. The command then calls only the operations of the given services. Repeatable." placeholder:"NAME=URL"`
	InternalAPIKey string            `env:"LECTERN_INTERNAL_API_KEY" help:"An internal key, for the operation that needs one. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`
	Timeout        time.Duration     `default:"10s" help:"How long an answer, or a check of --pre or --cluster, may take. Default: ${default}." placeholder:"DURATION"`
	Pre            bool              `help:"Check instead what an installation needs, before it or after it."`
	Cluster        bool              `help:"Say instead what keeps the pods and objects of a release from being ready. The command asks by kubectl, with your rights."`
	preFlags
	shell.OutputFlags
}

// Help returns the text of lectern check --help: the expected answers, and examples.
func (Check) Help() string {
	return `The command calls each operation and the web console once. It only reads. Operations that read one record are asked for the first record of their list. If the list is empty or refused, the command asks for a record that does not exist, and expects 404. Without a key, it also accepts 401 where a key may be needed, so it only checks that operations ask for one. The exit code is 1 if an answer is not the one in the API's description.

With --pre, the command calls no operation. It checks Postgres, Redis, a bucket and a cluster, and changes nothing. The URLs are in the variables of the services, such as DATABASE_URL and REDIS_URL, or in the file of --secrets. The exit code is 1 if a check fails. docs/reference/checks.md describes each check.

With --cluster, the command asks kubectl for the pods of a release, their events and last words, and for the objects of all namespaces. It asks each pod that runs for /readyz. The exit code is 1 if anything is not ready.

Examples:

	lectern check --env-file .lectern/demo.env
	lectern check --project pr_demo --service entries=http://lectern-entries --service region=http://lectern-region

	lectern check --pre --secrets secrets.yaml
	lectern check --pre --namespace lectern

	lectern check --cluster --namespace lectern`
}

// calledOperation is the result of the call of one operation, and a record of the command's output.
type calledOperation struct {
	Service      routes.Service `json:"service"`
	Operation    string         `json:"operation"`
	Status       int            `json:"status"` // 0: there was no answer
	Milliseconds int64          `json:"milliseconds"`
	Outcome      string         `json:"outcome"` // ok, or what is wrong
}

// Run calls each operation of the selected services, and then prints one record for each call. Run returns an error if
// an answer is missing or unexpected.
func (c *Check) Run(s *shell.Session) error {
	switch {
	case c.Pre && c.Cluster:
		return shell.Usagef("--pre and --cluster were both given; allowed: one of them")
	case c.Cluster && (c.Secrets != "" || c.To != ""):
		return shell.Usagef("--secrets or --to was given with --cluster; allowed: --namespace")
	case c.Pre || c.Cluster:
		return c.runPre(s)
	case c.preFlags.given():
		return shell.Usagef("--secrets, --to or --namespace was given without --pre or --cluster")
	case c.Project == "":
		return shell.Usagef("check needs --project ID or LECTERN_PROJECT_ID (see lectern check --help)")
	}
	targets := map[routes.Service]string{}
	if c.Service != nil && len(c.Service) == 0 {
		return shell.Usagef("--service was given without a value; allowed: NAME=URL")
	}
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
	header, credential, err := c.Credential()
	if err != nil {
		return err
	}
	k := checker{command: c, header: header, credential: credential, http: &http.Client{Timeout: c.Timeout}, known: map[string]string{"projectId": c.Project}}
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

// checker calls operations, and keeps the identifiers in their answers for the paths of later calls.
type checker struct {
	command            *Check
	header, credential string // as [shell.ServerFlags.Credential] returns them
	http               *http.Client
	known              map[string]string // values of the variables of paths
}

// firstOf returns the variable of later paths that the list of an operation fills. field is the field of the list's
// first record that has the variable's value. Both results are "" for any other operation.
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

// longestAnswer is the longest answer that the command accepts, in bytes. The limit is needed because a compressed
// answer may be a thousand times as long as the bytes that were sent.
const longestAnswer = 64 << 20

// call calls one operation at the address at, and keeps the first identifier of a list for later calls. The result is
// the status of the answer, or 0 without an answer. The error is not nil if there is no answer, or an unexpected one.
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
	header, credential := k.header, k.credential
	if r.Auth == routes.InternalKey {
		header, credential = "X-Api-Key", k.command.InternalAPIKey
	}
	if credential != "" && r.Auth != routes.None && r.Auth != routes.Endpoint {
		req.Header.Set(header, credential)
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
	return resp.StatusCode, k.judge(r, resp.StatusCode, answer, credential != "", known)
}

// path returns the path of r, in which identifiers from earlier answers replace the variables. known is false if the
// record in the path may not exist, so that the answer may be 404.
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

// remember stores the identifier of the first record in a list's answer, for the paths of later calls.
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

// judge returns an error if the answer is unexpected. Expected are a status of 200 with any body, and a refusal that
// the request causes, such as 401 without a key. keyed reports whether the request had a key, and known whether the
// records in its path exist.
func (k *checker) judge(r routes.Route, status int, answer []byte, keyed, known bool) error {
	if status == http.StatusOK {
		if slices.Contains([]routes.Auth{routes.APIKey, routes.AnyKey, routes.InternalKey}, r.Auth) && !keyed {
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
