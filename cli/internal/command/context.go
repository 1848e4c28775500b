package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/durable"
)

// storedContext is a deployment, a project and a key of it.
type storedContext struct {
	URL       string `json:"url"`
	ProjectID string `json:"project_id"`
	APIKey    string `json:"api_key"`
}

// variables returns the settings of the context.
func (c storedContext) variables() map[string]string {
	return map[string]string{"LECTERN_URL": c.URL, "LECTERN_PROJECT_ID": c.ProjectID, "LECTERN_API_KEY": c.APIKey}
}

// contexts is the file of all contexts. It holds keys, so only its owner may read it.
type contexts struct {
	Current  string                   `json:"current"`
	Contexts map[string]storedContext `json:"contexts"`
}

func (s *Session) contextFile() string { return filepath.Join(s.ConfigFolder, "contexts.json") }

// contexts reads the file. A missing one has none.
func (s *Session) contexts() (contexts, error) {
	all := contexts{Contexts: map[string]storedContext{}}
	if s.ConfigFolder == "" {
		return all, nil
	}
	content, err := os.ReadFile(s.contextFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return contexts{}, err
	}
	if err := json.Unmarshal(content, &all); err != nil {
		return contexts{}, usagef("%s is damaged (%w); remove it, and log in again", s.contextFile(), err)
	}
	if all.Contexts == nil {
		all.Contexts = map[string]storedContext{}
	}
	return all, nil
}

func (s *Session) saveContexts(all contexts) error {
	if s.ConfigFolder == "" {
		return errors.New("there is no folder for settings: set HOME")
	}
	if err := os.MkdirAll(s.ConfigFolder, 0o700); err != nil {
		return err
	}
	content, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(s.contextFile(), append(content, '\n'), 0o600)
}

// find returns the context of a name that was given as origin.
func (all contexts) find(origin, name string) (storedContext, error) {
	if c, ok := all.Contexts[name]; ok {
		return c, nil
	}
	known := "lectern login makes one"
	if names := slices.Sorted(maps.Keys(all.Contexts)); len(names) > 0 {
		known = "allowed: " + strings.Join(names, ", ")
	}
	return storedContext{}, usagef("%s was given as %q; %s", origin, name, known)
}

// at reports whether address equals the address of the context. An empty address does.
func (c storedContext) at(address string) bool {
	return address == "" || strings.TrimRight(address, "/") == strings.TrimRight(c.URL, "/")
}

// BeforeResolve collects the variables that flags may come from. Flags win over those of the environment, these over those
// of --env-file, and all over those of a context.
func (*commands) BeforeResolve(ctx *kong.Context, s *Session) error {
	flags, given := map[string]string{}, map[string]string{}
	for _, path := range ctx.Path {
		if path.Flag == nil {
			continue
		}
		value := fmt.Sprint(ctx.FlagValue(path.Flag))
		flags[path.Flag.Name] = value
		for _, name := range path.Flag.Tag.Envs {
			given[name] = value
		}
	}
	s.Quiet = flags["quiet"] == "true"
	variables := environment{given, s.Environ}
	if path := flags["env-file"]; path != "" {
		file, err := readEnvFile(path)
		if err != nil {
			return err
		}
		variables = append(variables, file)
	}
	node := ctx.Selected()
	takes := func(flag string) bool {
		return node != nil && slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == flag })
	}
	switch {
	case takes("internal-url"), flags["service"] != "": // these may lead to another deployment
		if flags["context"] != "" {
			return usagef("--context was given to %s, which goes to an address that no context has; allowed: --project, variables and --env-file", node.Path())
		}
	case takes("project") && node.Name != "login":
		chosen, err := s.chosen(flags, variables)
		if err != nil {
			return err
		}
		variables = append(variables, chosen)
	}
	ctx.AddResolver(variables)
	return nil
}

// chosen returns the variables of the context that applies, or none. A context's key goes to the context's own URL alone: if
// another URL was given, the current context does not apply.
func (s *Session) chosen(flags map[string]string, variables environment) (map[string]string, error) {
	all, err := s.contexts()
	address, name := variables.get("LECTERN_URL"), variables.get("LECTERN_CONTEXT")
	if path := flags["config"]; path != "" { // see messageFlags, which reports its faults
		config, _ := os.ReadFile(path)
		address = cmp.Or(gjson.GetBytes(config, "url").String(), address)
	}
	origin := "LECTERN_CONTEXT"
	if flags["context"] != "" {
		origin = "--context"
	}
	switch {
	case name == "":
		if _, damaged := errors.AsType[usageError](err); damaged {
			s.Note("lectern: no context applies: %s", oneLine(err))
		}
		if c, ok := all.Contexts[all.Current]; ok && c.at(address) {
			return c.variables(), nil
		}
		return nil, nil
	case err != nil:
		return nil, usagef("%s was given as %q: %w", origin, name, err)
	}
	c, err := all.find(origin, name)
	if err != nil {
		return nil, err
	}
	if !c.at(address) {
		return nil, usagef("the context %s is of %s, and another URL was given, %s; allowed: one of them", name, c.URL, address)
	}
	return c.variables(), nil
}

type contextCommands struct {
	List   contextList   `cmd:"" help:"List the contexts."`
	Use    contextUse    `cmd:"" help:"Make a context the current one."`
	Remove contextRemove `cmd:"" help:"Remove a context with its key from this machine."`
}

type contextList struct{ outputFlags }

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
func (l *contextList) Run(s *Session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	rows := []contextRow{}
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		c := all.Contexts[name]
		rows = append(rows, contextRow{name, name == all.Current, c.URL, c.ProjectID})
	}
	return l.printValue(s, rows)
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
func (u *contextUse) Run(s *Session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	chosen, err := all.find("NAME", u.Name)
	if err != nil {
		return err
	}
	all.Current = u.Name
	if err := s.saveContexts(all); err != nil {
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
func (r *contextRemove) Run(s *Session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	if _, err := all.find("NAME", r.Name); err != nil {
		return err
	}
	delete(all.Contexts, r.Name)
	if all.Current == r.Name {
		all.Current = ""
	}
	if err := s.saveContexts(all); err != nil {
		return err
	}
	s.Note("The context %s is removed.", r.Name)
	return nil
}
