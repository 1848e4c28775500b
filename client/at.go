package client

import (
	"fmt"
	"net/url"
	"strings"
)

// ListAt returns the list at a path of the API with its query, such as "/projects/pr_1/entries?limit=2". It is for
// operations that have no method here; [Client.JSON] also reads the one record at such a path. A path that names a host is
// an error, because the key would go there.
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
