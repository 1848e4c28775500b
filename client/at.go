package client

import (
	"fmt"
	"net/url"
	"strings"
)

// ListAt returns the list at a path of the API with its query, such as "/projects/pr_1/entries?limit=2". ListAt is for
// operations that the client has no method for. [Client.JSON] also reads a single record at such a path. A path that
// names a host or has a fragment is an error.
func ListAt(path string) (List, error) {
	u, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || u.Fragment != "" {
		return List{}, fmt.Errorf("path %q: want one such as /projects/ID/entries?limit=2", path)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return List{}, fmt.Errorf("path %q: %w", path, err)
	}
	return List{u.EscapedPath(), values}, nil
}
