// Package try has the commands for a first look. up runs everything on this machine, console opens the web console,
// and demo prints the demo project's records.
package try

import (
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/browser"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Console is the command lectern console, which opens the web console in the browser, signed in with the API key if
// there is one.
type Console struct {
	shell.ServerFlags
	Project string `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id." placeholder:"ID"`
	Print   bool   `help:"Print the link that signs in, and open no browser. The link contains the key: keep it secret."`
}

// Help returns the text of lectern console --help: how the key gets to the browser, and examples.
func (Console) Help() string {
	return `The console is a web page on the API's own address. The command signs in with the key; without one, the console asks for it. Other users of this machine do not see it: the browser opens a file that only this user can read, which leads to the console. The command removes the file after ten seconds. If it cannot start a browser, it prints the link.

Examples:

	lectern console --env-file .lectern/demo.env
	lectern console --env-file .lectern/demo.env --print
	lectern console --url https://api.example.com`
}

// Run opens the console in the browser, signed in if a key was given. With --print, or if no browser can be started,
// Run prints the link instead.
func (c *Console) Run(s *shell.Session) error {
	page := consolePage(c.URL)
	key, err := c.Key()
	if err != nil {
		return err
	}
	if key == "" {
		return c.open(s, page, page)
	}
	if c.Project == "" {
		return shell.Usagef("no project: set LECTERN_PROJECT_ID, or give --env-file")
	}
	link := consoleLink(c.URL, c.Project, key)
	if c.Print {
		return c.print(s, link)
	}
	file, err := writeSignIn(link)
	if err != nil {
		return fmt.Errorf("the page that signs in: %w", err)
	}
	err = c.open(s, (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(), link)
	return errors.Join(err, os.Remove(file))
}

// readWithin is how long a browser may take to start and to read the file that signs in.
const readWithin = 10 * time.Second

// open opens address in the browser, and returns after [readWithin] at the latest. If address is not link, address is a
// file, and open does not return before the browser had this time to read the file. With --print, or if no browser can
// be started, open prints link.
func (c *Console) open(s *shell.Session, address, link string) error {
	if c.Print {
		return c.print(s, link)
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	s.Note("Opening %s in the browser.", consolePage(c.URL))
	started := make(chan error, 1)
	// Some programs that start a browser run until the browser ends.
	go func() { started <- browser.OpenURL(address) }()
	read := time.NewTimer(readWithin)
	defer read.Stop()
	for {
		select {
		case err := <-started:
			if err != nil {
				s.Note("No browser could be started (%s). Open this link, and show it to nobody:", shell.OneLine(err))
				return c.print(s, link)
			}
			if address == link {
				return nil
			}
			started = nil
		case <-read.C:
			return nil
		case <-s.Context.Done():
			return nil
		}
	}
}

func (c *Console) print(s *shell.Session, link string) error {
	_, err := fmt.Fprintln(s.Out, link)
	return err
}

// writeSignIn writes a page that redirects to link, into a file that only this user can read, and returns the file's
// path. writeSignIn also removes such files that are older than a minute, which killed commands left.
func writeSignIn(link string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "lectern")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	const pattern = "console-*.html"
	left, err := fs.Glob(os.DirFS(folder), pattern) // the folder's own name may hold a bracket
	if err != nil {
		return "", err
	}
	for _, name := range left {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(file) // another command may have removed it
		}
	}
	f, err := os.CreateTemp(folder, pattern) // its mode is 0600
	if err != nil {
		return "", err
	}
	escaped := html.EscapeString(link)
	_, err = fmt.Fprintf(f, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=%s">
<title>Lectern</title>
<p><a href="%s">Go on to the console</a></p>
`, escaped, escaped)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// consolePage returns the address of the web console of the API at base.
func consolePage(base string) string { return strings.TrimSuffix(base, "/") + "/console/" }

// consoleLink returns the address of the console with the project and the key, which signs the browser in. The
// project and the key are after the #, in the part that browsers do not send to any server. The console removes that
// part from the address at once.
func consoleLink(base, project, key string) string {
	encode := func(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }
	return consolePage(base) + "#project=" + encode(project) + "&key=" + encode(key)
}
