package config

import (
	"net/url"
	"os"
	"regexp"
	"strings"
)

// ServerURL is the URL of a Postgres database or of a Redis. A ServerURL is a [Secret], because the URL may hold a
// password. The name of the URL's variable ends with _URL, and the password may be in a file that another variable
// names:
//
//	DATABASE_URL=postgres://entries_reader@db.example.com:5432/entries
//	DATABASE_PASSWORD_FILE=/run/secrets/password
//
// Code that opens a connection calls [ServerURL.Password] for each new connection if [ServerURL.HasPasswordFile]. So
// the password can change without a restart.
type ServerURL struct {
	Secret
	passwordFile string // its path; empty: there is none
	variable     string // that names passwordFile
}

// NewServerURL returns a ServerURL without a password file.
func NewServerURL(url string) ServerURL { return ServerURL{Secret: NewSecret(url)} }

// HasPasswordFile reports whether the password is in a file, which [ServerURL.Password] reads.
func (u ServerURL) HasPasswordFile() bool { return u.passwordFile != "" }

// Password reads the password from its file. One line end at the end of the file is dropped. The error is a [*Fault]
// that has the variable and the path, and never the content.
func (u ServerURL) Password() (string, error) {
	text, err := readSecretFile(u.variable, u.passwordFile)
	if err == nil && text == "" {
		err = &Fault{Variable: u.variable, Problem: "names a file that is empty: " + u.passwordFile}
	}
	return text, err
}

// passwordVariable returns the name of the variable that names the password file of the URL in variable.
func passwordVariable(variable string) string {
	return strings.TrimSuffix(variable, "_URL") + "_PASSWORD_FILE"
}

// withPasswordFile returns u, which the variable name has set, with the password file at path. The error reports that u
// has a password already, or that the file cannot be read or is empty.
func (u ServerURL) withPasswordFile(name, path string) (ServerURL, error) {
	u.passwordFile, u.variable = path, passwordVariable(name)
	if hasPassword(u.Reveal()) {
		return u, &Fault{Variable: name, Problem: "has a password, and " + u.variable + " is set; allowed: one of them"}
	}
	_, err := u.Password()
	return u, err
}

// pairs finds a password in key=value pairs, which Postgres takes instead of a URL.
var pairs = regexp.MustCompile(`(^|\s)password\s*=`)

// hasPassword reports whether a URL, or a text of key=value pairs, has a password for the server. [url.Parse] does not
// take several hosts, as URLs of Postgres may have.
func hasPassword(text string) bool {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		return pairs.MatchString(text)
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, options, _ := strings.Cut(rest, "?")
	query, _ := url.ParseQuery(options) // the server's package reports what is wrong
	if query.Get("password") != "" {
		return true
	}
	if strings.HasSuffix(scheme, "+sentinel") || query.Has("master_name") {
		return false // the password before the host is for the Sentinels, which name the server
	}
	authority, _, _ := strings.Cut(rest, "/")
	user := authority[:max(0, strings.LastIndex(authority, "@"))]
	_, password, _ := strings.Cut(user, ":")
	return password != ""
}

// readSecretFile returns the content of the file that variable names, without one line end at its end.
func readSecretFile(variable, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", &Fault{Variable: variable, Problem: "names a file that cannot be read: " + err.Error()}
	}
	text := strings.TrimSuffix(string(content), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}
