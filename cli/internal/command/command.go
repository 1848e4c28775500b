// Package command is the grammar of the command line: all commands and global flags. The commands of a group of the
// help are in a package for this group, except completion and version. Package shell parses and runs the commands.
package command

import (
	"github.com/lectern-dev/lectern/cli/internal/access"
	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/operate"
	"github.com/lectern-dev/lectern/cli/internal/read"
	"github.com/lectern-dev/lectern/cli/internal/send"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/cli/internal/try"
)

// commands is the whole command line for package kong: a field for each command and each global flag.
type commands struct {
	shell.Flags
	Number version `name:"version" help:"Print the version."`

	Up      try.Up      `cmd:"" group:"Try it on this machine:" help:"Run everything on this machine, with a demo project."`
	Console try.Console `cmd:"" group:"Try it on this machine:" help:"Open the web console in the browser, signed in."`
	Demo    try.Demo    `cmd:"" group:"Try it on this machine:" help:"Print the demo project's records, to send them elsewhere."`

	Get     read.Get     `cmd:"" group:"Read:" help:"Print records."`
	Export  read.Export  `cmd:"" group:"Read:" help:"Write whole lists to a file, page by page; continues where it was cut."`
	Changes read.Changes `cmd:"" group:"Read:" help:"Print all stored and removed records, from the beginning or from where the last run ended."`
	Sync    read.Sync    `cmd:"" group:"Read:" help:"Keep a copy of the project's entries and events, in Postgres or Parquet files, or push its changes to a receiver."`
	Singer  read.Singer  `cmd:"" group:"Read:" help:"Print the project's changes as messages, as a Singer tap."`
	Airbyte read.Airbyte `cmd:"" group:"Read:" help:"Print the project's changes as messages, as a source of Airbyte."`
	Listen  read.Listen  `cmd:"" group:"Read:" help:"Forward the project's changes to a receiver of webhooks on this machine, while you write it."`
	MCP     read.MCP     `cmd:"" name:"mcp" group:"Read:" help:"Serve the operations that read as tools of the Model Context Protocol, for an assistant."`
	Region  read.Region  `cmd:"" group:"Read:" help:"Print a project's region and its offset from UTC."`
	API     read.Call    `cmd:"" name:"api" group:"Read:" help:"Send a GET request to any path of the API."`

	Import send.Import `cmd:"" group:"Send and remove:" help:"Send files of records; continues where it was cut."`
	Erase  send.Erase  `cmd:"" group:"Send and remove:" help:"Remove an entry, all of a contact, or a whole project, for good."`
	Purge  send.Purge  `cmd:"" group:"Send and remove:" help:"Remove entries that were last updated long ago."`

	Login  access.Login    `cmd:"" group:"Access:" help:"Store a URL, a project, and a key or a login for later commands."`
	Logout access.Logout   `cmd:"" group:"Access:" help:"Remove the credential of a context from this machine."`
	Whoami access.Whoami   `cmd:"" group:"Access:" help:"Print what the key is and may do."`
	Named  access.Contexts `cmd:"" name:"context" group:"Access:" help:"List, choose and remove what lectern login stored."`
	Keys   access.Keys     `cmd:"" group:"Access:" help:"Mint, grant, list, rotate and revoke API keys."`
	Proxy  access.Proxy    `cmd:"" group:"Access:" help:"Check the credential proxy's rules."`

	Check          operate.Check          `cmd:"" group:"Operate:" help:"Call every operation once, and report wrong answers."`
	Databases      operate.Databases      `cmd:"" group:"Operate:" help:"Make the databases and roles of an installation, and their Secrets."`
	Restored       operate.Restored       `cmd:"" group:"Operate:" help:"Tell the service that its database was restored, after a restore that it cannot see."`
	MigrateToCitus operate.MigrateToCitus `cmd:"" group:"Operate:" name:"migrate-to-citus" help:"Distribute a service's database over the machines of a Citus cluster, in place; or bring it back."`

	Completion completionCommand `cmd:"" group:"This program:" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" group:"This program:" help:"Print the version."`
}

const description = `Lectern's command line: run the platform on this machine, get data in and out, manage API keys.

Exit codes: 0 success; 1 failure, and the last line on standard error says why; 2 wrong command line; 3 done, but some records were rejected; 4 the source has lost changes that the reader has; 130 interrupted. Export, import, sync, and changes with a cursor file then continue when you run them again.

Variables: the help of a flag names its variable in parentheses. Flags win over variables, these over --env-file, and all over the context that lectern login stored. A key, a file with a key and a file with a token are alternatives: the first source with one of them wins.`

// Main runs the command line args, without the program's name, and returns the exit code of the process.
func Main(s *shell.Session, args []string) int {
	return s.Run(&commands{}, description, destination.Texts(), args)
}
