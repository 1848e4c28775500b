package access

import (
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Contexts is the command group lectern context, which lists, selects and removes the contexts that lectern login
// stored.
type Contexts struct {
	List   contextList   `cmd:"" help:"List the contexts."`
	Use    contextUse    `cmd:"" help:"Make a context the current one."`
	Remove contextRemove `cmd:"" help:"Remove a context with its credential from this machine."`
}

type contextList struct{ shell.OutputFlags }

// Help returns the text of lectern context list --help: which settings a context has, which context applies, and
// examples.
func (contextList) Help() string {
	return `A context is a URL, a project, and a key or a login, which lectern login stores. Commands use the current one, or that of --context or LECTERN_CONTEXT. Flags, variables and --env-file win over it; if they name another URL, the current context does not apply. Commands with --internal-url use no context.

Examples:

	lectern context list
	lectern get entries --context pr_demo`
}

// contextRow is a context in the output of lectern context list, without its credential.
type contextRow struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	URL       string `json:"url"`
	ProjectID string `json:"projectId"`
}

// Run prints all contexts, sorted by name, without their credentials.
func (l *contextList) Run(s *shell.Session) error {
	all, err := s.Contexts()
	if err != nil {
		return err
	}
	rows := []contextRow{}
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		c := all.Contexts[name]
		rows = append(rows, contextRow{name, name == all.Current, c.URL, c.ProjectID})
	}
	return l.PrintValue(s, rows)
}

type contextUse struct {
	Name string `arg:"" type:"context" help:"The context's name."`
}

// Help returns the text of lectern context use --help, which is an example.
func (contextUse) Help() string {
	return `Example:

	lectern context use pr_demo`
}

// Run makes the named context the current one. An unknown name is a usage error.
func (u *contextUse) Run(s *shell.Session) error {
	var chosen shell.StoredContext
	err := s.UpdateContexts(func(all *shell.Contexts) (err error) {
		chosen, err = all.Find("NAME", u.Name)
		all.Current = u.Name
		return err
	})
	if err != nil {
		return err
	}
	s.Note("Commands use project %s at %s now.", chosen.ProjectID, chosen.URL)
	return nil
}

type contextRemove struct {
	Name string `arg:"" type:"context" help:"The context's name."`
}

// Help returns the text of lectern context remove --help, with an example.
func (contextRemove) Help() string {
	return `The key stays valid. To end it, see lectern keys revoke.

Example:

	lectern context remove pr_demo`
}

// Run removes the named context from the user's file of contexts. If the context is the current one, no context is
// current then. The context's API key stays valid.
func (r *contextRemove) Run(s *shell.Session) error {
	err := s.UpdateContexts(func(all *shell.Contexts) error {
		if _, err := all.Find("NAME", r.Name); err != nil {
			return err
		}
		delete(all.Contexts, r.Name)
		if all.Current == r.Name {
			all.Current = ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.Note("The context %s is removed.", r.Name)
	return nil
}
