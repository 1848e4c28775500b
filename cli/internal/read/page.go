package read

import (
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// pageFlags select a page of a list.
type pageFlags struct {
	Limit  int    `help:"How many records. The API's default: ${default_limit}." placeholder:"N"`
	Cursor string `help:"Continue after the previous page: its next cursor." placeholder:"CURSOR"`
}

// printPage prints a page, and to standard error how to get the next one.
func printPage(s *shell.Session, api shell.APIFlags, out shell.OutputFlags, page pageFlags, list client.List) error {
	reader, err := api.Client(shell.Interactive(), s.Err)
	if err != nil {
		return err
	}
	return printPageOf(s, reader, out, page, list)
}

func printPageOf(s *shell.Session, reader *client.Client, out shell.OutputFlags, page pageFlags, list client.List) error {
	body, next, err := reader.JSON(s.Context, list, page.Cursor, page.Limit)
	if err != nil {
		return err
	}
	if err := out.Print(s, body); err != nil {
		return err
	}
	if next != "" {
		s.Note("There is more: --cursor %s", next)
	}
	return nil
}
