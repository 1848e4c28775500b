package shell

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
	"time"

	"github.com/alecthomas/kong"
	"github.com/gofrs/flock"
	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/copies/durable"
)

// StoredContext is a context as lectern login stores it: the address of the API, a project's id, and a credential. An
// API key or a Login is the credential. After lectern logout, there is none.
type StoredContext struct {
	URL       string       `json:"url"`
	ProjectID string       `json:"project_id"`
	APIKey    string       `json:"api_key"`
	Login     *StoredLogin `json:"login,omitempty"`
}

// Contexts is the content of the file of all contexts. The file contains keys, so only its owner may read the file.
// Current is the name of the context that commands use by default, or "".
type Contexts struct {
	Current  string                   `json:"current"`
	Contexts map[string]StoredContext `json:"contexts"`
}

// ContextFile returns the path of contexts.json in the folder of the user's settings, where [Session.UpdateContexts]
// stores the contexts.
func (s *Session) ContextFile() string { return filepath.Join(s.ConfigFolder, "contexts.json") }

// Contexts reads the file of the contexts. If the file or the folder of settings is missing, there are no contexts. A
// damaged file is a usage error.
func (s *Session) Contexts() (Contexts, error) {
	all := Contexts{Contexts: map[string]StoredContext{}}
	if s.ConfigFolder == "" {
		return all, nil
	}
	content, err := os.ReadFile(s.ContextFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return Contexts{}, err
	}
	if err := json.Unmarshal(content, &all); err != nil {
		return Contexts{}, Usagef("%s is damaged (%w); remove it, and log in again", s.ContextFile(), err)
	}
	if all.Contexts == nil {
		all.Contexts = map[string]StoredContext{}
	}
	return all, nil
}

// UpdateContexts reads the contexts, calls change, and replaces the file of the contexts, unless change returns an
// error. A lock excludes other processes meanwhile. Without a ConfigFolder, UpdateContexts returns a usage error.
func (s *Session) UpdateContexts(change func(*Contexts) error) error {
	return s.lockContexts(func(all *Contexts, save func() error) error {
		if err := change(all); err != nil {
			return err
		}
		return save()
	})
}

// lockContexts reads the contexts and calls do, which may save them. A lock excludes other processes meanwhile.
func (s *Session) lockContexts(do func(all *Contexts, save func() error) error) error {
	if s.ConfigFolder == "" {
		return Usagef("there is no folder for settings: set HOME")
	}
	if err := os.MkdirAll(s.ConfigFolder, 0o700); err != nil {
		return err
	}
	lock := flock.New(s.ContextFile() + ".lock")
	if _, err := lock.TryLockContext(s.Context, 50*time.Millisecond); err != nil {
		return err
	}
	defer lock.Close()
	all, err := s.Contexts()
	if err != nil {
		return err
	}
	return do(&all, func() error {
		return durable.WriteJSON(s.ContextFile(), all)
	})
}

// Find returns the context with the given name. origin is the flag, variable or argument that gave the name. The
// usage error for an unknown name contains origin and the known names.
func (all Contexts) Find(origin, name string) (StoredContext, error) {
	if c, ok := all.Contexts[name]; ok {
		return c, nil
	}
	known := "lectern login makes one"
	if names := slices.Sorted(maps.Keys(all.Contexts)); len(names) > 0 {
		known = "allowed: " + strings.Join(names, ", ")
	}
	return StoredContext{}, Usagef("%s was given as %q; %s", origin, name, known)
}

// at reports whether address is the address of the context, apart from slashes at the end. at also returns true for
// "", because then the user gave no address.
func (c StoredContext) at(address string) bool {
	return address == "" || strings.TrimRight(address, "/") == strings.TrimRight(c.URL, "/")
}

// Flags are the flags of every command. --env-file and --context decide which variables set the other flags. So
// [Flags.BeforeResolve] reads these two flags by name, before the parser sets any field of Flags.
type Flags struct {
	EnvFile string `help:"Read variables from FILE, such as .lectern/demo.env; those of the environment win." placeholder:"FILE"`
	Context string `type:"context" env:"LECTERN_CONTEXT" help:"Use this context of lectern login, instead of the current one." placeholder:"NAME"`
	Quiet   bool   `short:"q" help:"Print only errors on standard error, and no progress bars."`
}

// BeforeResolve collects the variables from which flags get their values, and sets Quiet of the session. A flag wins
// over the environment, the environment over --env-file, and --env-file over a context. kong calls BeforeResolve before
// it sets the flags.
func (Flags) BeforeResolve(ctx *kong.Context, s *Session) error {
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
			return Usagef("--context was given to %s, which goes to an address that no context has; allowed: --project, variables and --env-file", node.Path())
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

// chosen returns the variables of the context that applies, or none. The key of a context is sent only to the
// context's own URL. If another URL was given, the current context does not apply, and a context that was named is a
// usage error.
func (s *Session) chosen(flags map[string]string, variables environment) (map[string]string, error) {
	all, err := s.Contexts()
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
			s.Note("lectern: no context applies: %s", OneLine(err))
		}
		if c, ok := all.Contexts[all.Current]; ok && c.at(address) {
			return s.apply(all.Current, c), nil
		}
		return nil, nil
	case err != nil:
		return nil, Usagef("%s was given as %q: %w", origin, name, err)
	}
	c, err := all.Find(origin, name)
	if err != nil {
		return nil, err
	}
	if !c.at(address) {
		return nil, Usagef("the context %s is of %s, and another URL was given, %s; allowed: one of them", name, c.URL, address)
	}
	return s.apply(name, c), nil
}

// apply returns the context as variables of the environment, such as LECTERN_URL, from which flags get their values.
// apply also makes the session use the context's login, if there is one.
func (s *Session) apply(name string, c StoredContext) map[string]string {
	if c.Login != nil {
		s.token = s.tokenOf(name, *c.Login)
	}
	return map[string]string{"LECTERN_URL": c.URL, "LECTERN_PROJECT_ID": c.ProjectID, "LECTERN_API_KEY": c.APIKey}
}
