package access

import (
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Contexts is lectern context: the commands for what lectern login stored.
type Contexts struct {
	List   contextList   `cmd:"" help:"List the contexts."`
	Use    contextUse    `cmd:"" help:"Make a context the current one."`
	Remove contextRemove `cmd:"" help:"Remove a context with its key from this machine."`
}

type contextList struct{ shell.OutputFlags }

// Help describes contexts, with examples.
func (contextList) Help() string {
	return `A context is a URL, a project and a key, which lectern login stores. Commands use the current one, or that of --context or LECTERN_CONTEXT. Flags, variables and --env-file win over it; if they name another URL, the current context does not apply. Commands with --internal-url use no context.

Examples:

	lectern context list
	lectern get entries --context pr_demo`
}

// contextRow is a context without its key.
type contextRow struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	URL       string `json:"url"`
	ProjectID string `json:"projectId"`
}

// Run lists.
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

// Help shows an example.
func (contextUse) Help() string {
	return `Example:

	lectern context use pr_demo`
}

// Run makes the context the current one.
func (u *contextUse) Run(s *shell.Session) error {
	all, err := s.Contexts()
	if err != nil {
		return err
	}
	chosen, err := all.Find("NAME", u.Name)
	if err != nil {
		return err
	}
	all.Current = u.Name
	if err := s.SaveContexts(all); err != nil {
		return err
	}
	s.Note("Commands use project %s at %s now.", chosen.ProjectID, chosen.URL)
	return nil
}

type contextRemove struct {
	Name string `arg:"" type:"context" help:"The context's name."`
}

// Help shows an example.
func (contextRemove) Help() string {
	return `The key stays valid. To end it, see lectern keys revoke.

Example:

	lectern context remove pr_demo`
}

// Run removes the context.
func (r *contextRemove) Run(s *shell.Session) error {
	all, err := s.Contexts()
	if err != nil {
		return err
	}
	if _, err := all.Find("NAME", r.Name); err != nil {
		return err
	}
	delete(all.Contexts, r.Name)
	if all.Current == r.Name {
		all.Current = ""
	}
	if err := s.SaveContexts(all); err != nil {
		return err
	}
	s.Note("The context %s is removed.", r.Name)
	return nil
}
