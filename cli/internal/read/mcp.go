package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/cli/internal/tools"
)

// MCP is the command lectern mcp, which serves tools on standard input and output.
type MCP struct {
	shell.APIFlags
}

// Help returns the text of lectern mcp --help: what a client of the protocol needs, and examples.
func (MCP) Help() string {
	return `The command serves the operations that read a project as tools, for one client on standard input and output. The tools read one project with one key, which flags, variables or the context of lectern login give. Give the client a key of its own, with the scopes that the client needs. The client sees what the key may read, personal data too.

Many assistants take the command as {"mcpServers": {"lectern": {"command": "lectern", "args": ["mcp"]}}}, after lectern login.

Examples:

	lectern mcp --env-file .lectern/demo.env
	npx @modelcontextprotocol/inspector --cli lectern mcp --method tools/list`
}

// Run serves until the client closes standard input.
func (m *MCP) Run(s *shell.Session) error {
	reader, err := m.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	return tools.Serve(s.Context, reader, m.Project, s.In, s.Out)
}
