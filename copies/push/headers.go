package push

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/http/httpguts"
)

// ownHeaders are those that a request has already, and those that belong to the connection (RFC 9110, section 7.6.1).
var ownHeaders = []string{
	"Host", "Content-Type", "Content-Length", "Content-Encoding", "User-Agent",
	standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
}

// readHeaders reads a file of headers, a line each. An error names the file and the number of the line, but shows
// nothing of the line, which may be a secret.
func readHeaders(file string) (http.Header, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the file of headers: %w", err)
	}
	headers, number := http.Header{}, 0
	for line := range strings.Lines(string(content)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		isName := func(own string) bool { return strings.EqualFold(name, own) }
		var problem string
		switch {
		case !found:
			problem = "has no colon; want Name: value"
		case !httpguts.ValidHeaderFieldName(name):
			problem = "has a name that HTTP does not allow; want Name: value"
		case slices.ContainsFunc(ownHeaders, isName):
			problem = "has a header that push sets itself, or that belongs to the connection"
		case value == "":
			problem = "has no value; want Name: value"
		case !httpguts.ValidHeaderFieldValue(value):
			problem = "has a control character in its value"
		default:
			headers.Add(name, value)
			continue
		}
		return nil, fmt.Errorf("the file of headers %s: line %d %s", file, number, problem)
	}
	return headers, nil
}
