// Package access has the commands for API keys, for the contexts that lectern login stores, and for the rules of the
// credential proxy.
package access

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Login is the command lectern login, which checks an API key, or signs in at an OpenID provider. The command stores the
// credential with its URL and project as a context.
type Login struct {
	URL      string   `name:"url" type:"url" env:"LECTERN_URL" help:"The address of the API." placeholder:"URL"`
	Project  string   `short:"p" env:"LECTERN_PROJECT_ID" help:"The project's id." placeholder:"ID"`
	Name     string   `help:"The context's name. Default: the project's id." placeholder:"NAME"`
	Issuer   string   `type:"url" help:"Sign in at this OpenID provider, in place of a key." placeholder:"URL"`
	ClientID string   `name:"client-id" help:"The id of a public client of the provider, with the device flow." placeholder:"ID"`
	Scope    []string `default:"openid,offline_access" help:"What to ask the provider for. Default: ${default}." placeholder:"SCOPE,…"`
	Audience string   `help:"The audience of the token that the API accepts. Default: the client id." placeholder:"TEXT"`
}

// Help returns the text of lectern login --help: where the credential is read and stored, and examples.
func (Login) Help() string {
	return `On a terminal, the command asks for the URL, the project and the key, which it does not show. Else it reads the key from standard input. It asks the API what the key may do, and stores the three as a context in a file that only this user can read. The context becomes the current one; see lectern context list.

With --issuer, the command needs no key. It shows an address and a code, and waits until you sign in there. It stores the tokens in place of a key, and later commands renew them. lectern keys grant lets you read a project.

Examples:

	lectern login
	lectern login --url https://lectern.example.com --project pr_1 --name shop < key.txt
	lectern login --url https://lectern.example.com --project pr_1 --issuer https://id.example.com --client-id lectern`
}

// Run asks for missing settings if there is a terminal, and reads the key or signs in. If the API accepts the
// credential, Run stores the settings as the current context.
func (l *Login) Run(s *shell.Session) error {
	if (l.Issuer == "") != (l.ClientID == "") {
		return shell.Usagef("--issuer and --client-id belong together, and only one was given")
	}
	if err := l.ask(s); err != nil {
		return err
	}
	stored, advice := shell.StoredContext{URL: l.URL, ProjectID: l.Project}, "check the key, and that it is one of the project "+l.Project
	flags, err := shell.ServerFlags{URL: l.URL}, error(nil)
	if l.Issuer == "" {
		stored.APIKey, err = readKey(s)
		flags.APIKey = stored.APIKey
	} else {
		stored.Login = &shell.StoredLogin{Issuer: l.Issuer, ClientID: l.ClientID, Audience: cmp.Or(l.Audience, l.ClientID)}
		err = stored.Login.SignIn(s, l.Scope)
		flags.Token = func(context.Context) (string, error) { return stored.Login.Token, nil }
		advice = fmt.Sprintf("an administrator can let you in: lectern keys grant --project %s --issuer %s --subject %s", l.Project, l.Issuer, stored.Login.Subject)
	}
	if err != nil {
		return err
	}
	reader, err := flags.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	body, err := ownKey(s, reader, l.Project)
	if client.Code(err) == "unauthorized" {
		return shell.Advise(err, advice)
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
	name := cmp.Or(l.Name, l.Project)
	err = s.UpdateContexts(func(all *shell.Contexts) error {
		all.Current, all.Contexts[name] = name, stored
		return nil
	})
	if err != nil {
		return err
	}
	right, what := "Key", "The key"
	if stored.Login != nil {
		right, what = "Grant", "The login"
	}
	s.Note("%s %s of project %s may %s. %s is stored as the context %s in %s.",
		right, own.ID, l.Project, strings.Join(own.Scopes, ", "), what, name, s.ContextFile())
	return nil
}

// Logout is the command lectern logout, which removes the credential of a context.
type Logout struct {
	Name string `arg:"" optional:"" type:"context" help:"The context's name. Default: the current one."`
}

// Help returns the text of lectern logout --help, with an example.
func (Logout) Help() string {
	return `The context keeps its URL and project. A key stays valid: to end it, see lectern keys revoke. Tokens stay valid until they expire, or until the provider ends the session.

Example:

	lectern logout pr_demo`
}

// Run removes the key or the login of the context from the user's file of contexts. An unknown name is a usage error.
func (l *Logout) Run(s *shell.Session) error {
	var name string
	err := s.UpdateContexts(func(all *shell.Contexts) error {
		name = cmp.Or(l.Name, all.Current)
		c, err := all.Find("NAME", name)
		c.APIKey, c.Login = "", nil
		all.Contexts[name] = c
		return err
	})
	if err != nil {
		return err
	}
	s.Note("The context %s has no key and no login any more.", name)
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
			line, err := in.ReadString('\n')
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
	text, err := read()
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", shell.Usagef("no key was given; allowed: one in a line of standard input")
	}
	return text, nil
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
