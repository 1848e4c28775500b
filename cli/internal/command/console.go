package command

import (
	"net/url"
	"strings"
)

// consoleLink returns the address of the console of the API at base, which signs in to the project with key. Browsers
// send nothing after the # to any server, and the console takes it out of the address at once.
func consoleLink(base, project, key string) string {
	encode := func(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }
	return strings.TrimSuffix(base, "/") + "/console/#project=" + encode(project) + "&key=" + encode(key)
}
