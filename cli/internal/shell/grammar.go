package shell

import (
	"errors"

	"github.com/alecthomas/kong"
)

// exited carries an exit code out of the parser. The parser ends the process for --help: its exit function panics
// with exited, and [Session.Run] recovers the exit code.
type exited int

// Run runs the command line args, prints an error to standard error, and returns the exit code. grammar is a pointer to
// a struct with the tags of kong, which defines the commands and the flags. vars are the texts that the tags
// name. A command gets the session as a parameter of its method Run.
func (s *Session) Run(grammar any, description string, vars kong.Vars, args []string) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			e, ok := fault.(exited)
			if !ok {
				panic(fault)
			}
			code = int(e)
		}
	}()
	parser, err := s.Parser(grammar, description, vars)
	if err != nil {
		return s.fail(err)
	}
	if len(args) > 0 && args[0] == completeWord {
		complete(s, parser, args[1:])
		return ExitOK
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	parsed, err := parser.Parse(args)
	if refused, ok := errors.AsType[*kong.ParseError](err); ok {
		if incomplete(refused) {
			return s.fail(refused.Context.PrintUsage(false))
		}
		return s.fail(Usagef("%s", refusal(refused)))
	}
	if err != nil {
		return s.fail(err)
	}
	return s.fail(parsed.Run())
}

// Parser returns the parser of grammar, a pointer to a struct with the tags of kong. description is the text of the
// program's --help, and vars are the texts that the tags name.
func (s *Session) Parser(grammar any, description string, vars kong.Vars) (*kong.Kong, error) {
	options := append(mappers(),
		kong.Name("lectern"),
		kong.Description(description),
		kong.Writers(s.Out, s.Err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100, NoExpandSubcommands: true}),
		kong.Bind(s),
		vars,
	)
	parser, err := kong.New(grammar, options...)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Print help about a command."
	for _, command := range parser.Model.Children {
		for _, child := range command.Children {
			child.Group = &kong.Group{Key: "commands", Title: "Commands:"}
		}
	}
	return parser, nil
}
