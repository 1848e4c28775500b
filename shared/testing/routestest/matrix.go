// Package routestest has a matrix of requests and the service that must answer each, to test routing in front of the
// services. It is for tests. It writes requests without an HTTP client, because clients clean paths.
package routestest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/wire"
)

//go:embed matrix.txt
var matrix string

// The keys that a request of the matrix may have.
const (
	NoKey       = "-"        // no key
	APIKey      = "api"      // the demo project's API key
	InternalKey = "internal" // one of INTERNAL_API_KEYS
)

// Row is one request and the expected answer.
type Row struct {
	Line   int // of the matrix, from 1
	Key    string
	Method string
	Path   string // with its query, as in the request line
	// Service is the service whose access log has the request. Empty: no service gets it.
	Service routes.Service
	Status  int
}

// String identifies a row.
func (r Row) String() string {
	return fmt.Sprintf("matrix.txt:%d: %s %s (key: %s)", r.Line, r.Method, wire.Shorten(r.Path, 90), r.Key)
}

// Matrix returns all rows.
func Matrix() ([]Row, error) { return parse(matrix) }

func parse(text string) ([]Row, error) {
	var rows []Row
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		row, err := parseRow(fields)
		if err != nil {
			faults = append(faults, fmt.Errorf("matrix.txt:%d: %w", number, err))
			continue
		}
		row.Line = number
		rows = append(rows, row)
	}
	return rows, errors.Join(faults...)
}

func parseRow(fields []string) (Row, error) {
	if len(fields) != 5 {
		return Row{}, fmt.Errorf("%d columns, want 5", len(fields))
	}
	row := Row{Key: fields[0], Method: fields[1], Service: routes.Service(fields[3])}
	if row.Key != NoKey && row.Key != APIKey && row.Key != InternalKey {
		return Row{}, fmt.Errorf("the key %q is none", row.Key)
	}
	if row.Service == "-" {
		row.Service = ""
	}
	var err error
	if row.Path, err = expand(fields[2]); err != nil {
		return Row{}, err
	}
	if row.Status, err = strconv.Atoi(fields[4]); err != nil {
		return Row{}, fmt.Errorf("the status %q is none", fields[4])
	}
	return row, nil
}

// expand replaces {a*3} by aaa.
func expand(path string) (string, error) {
	before, rest, ok := strings.Cut(path, "{")
	if !ok {
		return path, nil
	}
	inner, after, ok := strings.Cut(rest, "}")
	text, times, starred := strings.Cut(inner, "*")
	n, err := strconv.Atoi(times)
	if !ok || !starred || err != nil || n < 1 {
		return "", fmt.Errorf("%q: want {TEXT*TIMES}", path)
	}
	return before + strings.Repeat(text, n) + after, nil
}

// body is the body of methods with a body. Every operation with a body accepts it.
const body = `{"projectId":"pr_demo"}`

// Ask sends the row's request over conn, which is not used for another request, and returns the answer. host is sent as
// Host, key as X-Api-Key unless it is empty, and id as X-Request-Id. The logs have the request with that id. The
// answer's body can be read until conn is closed.
func (r Row) Ask(conn net.Conn, host, key, id string) (*http.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Request-Id: %s\r\nConnection: close\r\n", r.Method, r.Path, host, id)
	if key != "" {
		fmt.Fprintf(&b, "X-Api-Key: %s\r\n", key)
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	default:
		b.WriteString("\r\n")
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
}
