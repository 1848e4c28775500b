// Package access has the commands for API keys, for the contexts that lectern login stores, and for the rules of the
// credential proxy.
package access

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Login is the command lectern login, which checks an API key and stores the key with its URL and project as a
// context.
type Login struct {
	URL     string `name:"url" type:"url" env:"LECTERN_URL" help:"The address of the API." placeholder:"URL"`
	Project string `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id." placeholder:"ID"`
	Name    string `help:"The context's name. Default: the project's id." placeholder:"NAME"`
}

// Help returns the text of lectern login --help: where the key is read and stored, and examples.
func (Login) Help() string {
	return `On a terminal, the command asks for the URL, the project and the key, which it does not show. Else it reads the key from standard input. It asks the API what the key may do, and stores the three as a context in a file that only this user can read. The context becomes the current one; see lectern context list.

Examples:

	lectern login
	lectern login --url https://lectern.example.com --project pr_1 --name shop < key.txt`
}

// Run asks for missing settings if there is a terminal, and reads the key. If the API accepts the key, Run stores the
// settings as the current context.
func (l *Login) Run(s *shell.Session) error {
	if err := l.ask(s); err != nil {
		return err
	}
	key, err := readKey(s)
	if err != nil {
		return err
	}
	flags := shell.ServerFlags{URL: l.URL, APIKey: key}
	reader, err := flags.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := ownKey(s, reader, l.Project)
	if client.Code(err) == "unauthorized" {
		return shell.Advise(err, "check the key, and that it is one of the project "+l.Project)
	}
	if err != nil {
		return err
	}
	var own struct {
		ID     string   `json:"keyId"`
		Scopes []string `json:"scopes"`
	}
	if err := json.Unmarshal(body, &own); err != nil {
		return fmt.Errorf("the answer about the key: %w", err)
	}
	all, err := s.Contexts()
	if err != nil {
		return err
	}
	all.Current = cmp.Or(l.Name, l.Project)
	all.Contexts[all.Current] = shell.StoredContext{URL: l.URL, ProjectID: l.Project, APIKey: key}
	if err := s.SaveContexts(all); err != nil {
		return err
	}
	s.Note("Key %s of project %s may %s. It is stored as the context %s in %s.",
		own.ID, l.Project, strings.Join(own.Scopes, ", "), all.Current, s.ContextFile())
	return nil
}

// ask asks the user for the URL and the project if no flag or variable gave them. Without a terminal, ask returns a
// usage error for a missing setting.
func (l *Login) ask(s *shell.Session) error {
	in := bufio.NewReader(s.In)
	for _, question := range []struct {
		text, flag, standard string
		answer               *string
	}{
		{"URL", "--url URL or LECTERN_URL", "http://127.0.0.1:8080", &l.URL},
		{"Project", "--project ID or LECTERN_PROJECT_ID", "", &l.Project},
	} {
		for *question.answer == "" {
			if s.ReadSecret == nil {
				return shell.Usagef("login needs %s (see lectern login --help)", question.flag)
			}
			standard := ""
			if question.standard != "" {
				standard = " [" + question.standard + "]"
			}
			fmt.Fprintf(s.Err, "%s%s: ", question.text, standard)
			line, err := await(s, func() (string, error) { return in.ReadString('\n') })
			if err != nil {
				return err
			}
			*question.answer = cmp.Or(strings.TrimSpace(line), question.standard)
		}
	}
	return nil
}

// readKey reads an API key: from the terminal without showing the typed text, or else from the first 4 KiB of standard
// input. An empty key is a usage error.
func readKey(s *shell.Session) (string, error) {
	read := func() (string, error) {
		text, err := io.ReadAll(io.LimitReader(s.In, 4096))
		return string(text), err
	}
	if s.ReadSecret != nil {
		fmt.Fprint(s.Err, "API key (it is not shown): ")
		defer fmt.Fprintln(s.Err)
		read = s.ReadSecret
	}
	text, err := await(s, read)
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", shell.Usagef("no key was given; allowed: one in a line of standard input")
	}
	return text, nil
}

// await calls read and returns its results. If the session's context ends first, await returns the context's error at
// once, while read continues in the background.
func await(s *shell.Session, read func() (string, error)) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := read()
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-s.Context.Done():
		return "", s.Context.Err()
	}
}

// Whoami is the command lectern whoami, which prints the API's record of the key in use.
type Whoami struct {
	shell.APIFlags
	shell.OutputFlags
}

// Help returns the text of lectern whoami --help: the fields of the record, and examples.
func (Whoami) Help() string {
	return `The API's own record of the key: its id, project, scopes, rate and expiry.

Examples:

	lectern whoami
	lectern whoami --context pr_demo
	lectern whoami --env-file .lectern/demo.env -o json`
}

// Run asks the API for the record of the key in use, and prints the record.
func (w *Whoami) Run(s *shell.Session) error {
	reader, err := w.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := ownKey(s, reader, w.Project)
	return w.PrintOne(s, body, err)
}

// ownKey returns the API's record of the key that reader sends, in JSON.
func ownKey(s *shell.Session, reader *client.Client, project string) ([]byte, error) {
	list, err := client.ListAt("/projects/" + url.PathEscape(project) + "/key")
	if err != nil {
		return nil, err
	}
	body, _, err := reader.JSON(s.Context, list, "", 0)
	return body, err
}
