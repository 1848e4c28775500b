package command

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/routes"
)

type eraseCommand struct {
	administrationFlags `set:"service=entries"`

	Entry   string            `help:"Remove the entry of this id, and its events." placeholder:"ID"`
	Contact string            `help:"Remove all entries of this contact with their events, and every entry that an event of the contact names." placeholder:"ID"`
	All     bool              `help:"Remove all data of the project, and revoke its API keys."`
	Service map[string]string `env:"LECTERN_INTERNAL_SERVICES" mapsep:"," help:"The internal address of each service, for --all: region, entries, embeddables and experiments." placeholder:"NAME=URL,…"`
	outputFlags
	Confirm string `help:"Do not ask before --all removes this project." placeholder:"ID"`
}

// Help describes the effect, with examples.
func (eraseCommand) Help() string {
	return `The removal is final, and later data for the id of an erased entry is rejected. Followers of the change feed see the removal of entries. Backups and copies of others stay. You may repeat the command; it prints how many records it removed.

--all asks for the project's id first. It revokes the project's keys, and then removes its data from every service; the feed does not show that. If the command was cut, run it again.

Examples:

	lectern erase --entry ent_00001gzn --env-file .lectern/demo.env
	lectern erase --contact con_15638 --project pr_1
	lectern erase --all --project pr_1 --service region=http://lectern-region:9090,entries=http://lectern-entries:9090,embeddables=http://lectern-embeddables:9090,experiments=http://lectern-experiments:9090`
}

// Run erases.
func (e *eraseCommand) Run(s *Session, c *commands) error {
	given := 0
	for _, is := range []bool{e.Entry != "", e.Contact != "", e.All} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return usagef("erase was given %d of --entry ID, --contact ID and --all; allowed: one of them", given)
	case e.All:
		return e.removeProject(s, c)
	}
	admin, err := e.open(s)
	if err != nil {
		return err
	}
	var all client.Removed
	for more := true; more; {
		var removed client.Removed
		if e.Entry != "" {
			removed, err = admin.EraseEntry(s.Context, e.Project, e.Entry)
		} else {
			removed, err = admin.EraseContact(s.Context, e.Project, e.Contact)
		}
		if err != nil {
			return advised(err, routes.Entries)
		}
		all.Entries += removed.Entries
		all.Events += removed.Events
		more = removed.More
	}
	return e.printValue(s, all)
}

// removeProject removes the project from every service. Region comes first, as it revokes the keys.
func (e *eraseCommand) removeProject(s *Session, c *commands) error {
	order := []routes.Service{routes.Region, routes.Entries, routes.Embeddables, routes.Experiments}
	var admins []*client.Administrator
	for _, name := range order {
		at := administrationFlags{InternalURL: e.Service[string(name)], AdminAPIKey: e.AdminAPIKey}
		if at.InternalURL == "" {
			return usagef("no address of %s: --all needs --service region=URL,entries=URL,embeddables=URL,experiments=URL, or LECTERN_INTERNAL_SERVICES", name)
		}
		admin, err := at.open(s)
		if err != nil {
			return err
		}
		admins = append(admins, admin)
	}
	if len(e.Service) > len(order) {
		return usagef("--service: allowed are region, entries, embeddables and experiments")
	}
	if err := e.confirm(s); err != nil {
		return err
	}
	removed := map[routes.Service]map[string]int{}
	count := newCounter(s, c, 0)
	defer count.done()
	for i, name := range order {
		removed[name] = map[string]int{}
		for more := true; more; {
			some, err := admins[i].RemoveProject(s.Context, e.Project)
			if err != nil {
				return advised(fmt.Errorf("%s: %w", name, err), name)
			}
			for record, n := range some.Records {
				removed[name][record] += n
				count.add(n, "%d records, of %s now", name)
			}
			more = some.More
		}
	}
	count.done()
	return e.printValue(s, removed)
}

// confirm asks for the project's id, unless it was given.
func (e *eraseCommand) confirm(s *Session) error {
	typed := e.Confirm
	if typed == "" {
		fmt.Fprintf(s.Err, "All data of the project %s will be removed, and its keys revoked. This cannot be undone.\nType the project's id to continue: ", e.Project)
		line, err := bufio.NewReader(io.LimitReader(s.In, 4096)).ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		typed = strings.TrimSpace(line)
	}
	if typed != e.Project {
		return usagef("%q is not the project's id, %q: nothing was removed", typed, e.Project)
	}
	return nil
}

// counter shows the number of removed records.
type counter struct {
	bar *progress.Bar // nil for a quiet command
	n   int64
}

// newCounter returns a counter up to total; 0 is an unknown total.
func newCounter(s *Session, c *commands, total int64) *counter {
	if c.Quiet {
		return &counter{}
	}
	return &counter{bar: progress.Count(s.Err, total)}
}

// add adds n, and shows the sum by format.
func (c *counter) add(n int, format string, args ...any) {
	c.n += int64(n)
	if c.bar != nil {
		c.bar.Set(c.n, format, append([]any{c.n}, args...)...)
	}
}

// done removes the bar.
func (c *counter) done() {
	if c.bar != nil {
		c.bar.Done()
		c.bar = nil
	}
}
