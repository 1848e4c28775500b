package send

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Erase is the command lectern erase, which removes an entry, all data of a contact, or a whole project for good.
type Erase struct {
	shell.ProjectAdministratorFlags
	shell.ServerFlags

	Entry   string `help:"Remove the entry of this id, and its events." placeholder:"ID"`
	Contact string `help:"Remove all entries of this contact with their events, and every entry that an event of the contact names." placeholder:"ID"`
	All     bool   `help:"Remove all data of the project, and revoke its API keys."`
	shell.OutputFlags
	waitFlags
	Confirm string `help:"Do not ask before --all removes this project." placeholder:"ID"`
}

// Help returns the text of lectern erase --help: the effects of a removal, and examples.
func (Erase) Help() string {
	return `The removal is final, and later data for the id of an erased entry is rejected. Followers of the change feed see the removal of entries. Backups and copies of others stay. You may repeat the command; it prints how many records it removed.

--all asks for the project's id first. It revokes the project's keys, and then removes its data from every service; the feed does not show that. If the command was cut, run it again.

Examples:

	lectern erase --entry ent_00001gzn --env-file .lectern/demo.env
	lectern erase --contact con_15638 --project pr_1
	lectern erase --contact con_15638 --project pr_1 --wait file:///data/shop --wait s3://lake/shop
	lectern erase --all --project pr_1`
}

// Run removes the data that the flags name, and prints the number of removed records. With --wait, Run also waits for
// the copies, and prints a receipt.
func (e *Erase) Run(s *shell.Session) error {
	given := 0
	for _, is := range []bool{e.Entry != "", e.Contact != "", e.All} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return shell.Usagef("erase was given %d of --entry ID, --contact ID and --all; allowed: one of them", given)
	case e.All && len(e.Wait) > 0:
		return shell.Usagef("--wait or LECTERN_ERASE_WAIT was given with --all, which copies do not see; allowed: --entry or --contact")
	case e.All:
		return e.removeProject(s)
	}
	admin, err := e.Administrator(s)
	if err != nil {
		return err
	}
	waited, reader, err := e.copies(s, e.ServerFlags, e.Project)
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
			return shell.AdviseAdministrator(err)
		}
		all.Entries += removed.Entries
		all.Events += removed.Events
		more = removed.More
	}
	if len(waited) == 0 {
		return e.PrintValue(s, all)
	}
	r, err := e.wait(s, receipt{
		ProjectID: e.Project, EntryID: e.Entry, ContactID: e.Contact, Entries: all.Entries, Events: all.Events, RemovedAt: s.Now().UTC(),
	}, waited, reader)
	if err != nil {
		return err
	}
	return e.PrintValue(s, r)
}

// removeProject asks for confirmation unless --confirm is set, and then removes all data of the project from every
// service. The project's keys are revoked first. removeProject prints the number of removed records of each kind.
func (e *Erase) removeProject(s *shell.Session) error {
	admin, err := e.Administrator(s)
	if err != nil {
		return err
	}
	if err := e.confirm(s); err != nil {
		return err
	}
	removed, all := map[string]int{}, 0
	bar := progress.Count(s.Err, s.Quiet, 0)
	defer bar.Done()
	for more := true; more; {
		some, err := admin.RemoveProject(s.Context, e.Project)
		if err != nil {
			return shell.AdviseAdministrator(err)
		}
		for record, n := range some.Records {
			removed[record] += n
			all += n
		}
		bar.Set(int64(all), "%d records", all)
		more = some.More
	}
	bar.Done()
	return e.PrintValue(s, removed)
}

// confirm asks the user to type the project's id, unless --confirm gave an id. A wrong id is a usage error.
func (e *Erase) confirm(s *shell.Session) error {
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
		return shell.Usagef("%q is not the project's id, %q: nothing was removed", typed, e.Project)
	}
	return nil
}
