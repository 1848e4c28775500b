package shell

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// incomplete reports whether the only fault of the command line is that it names a group of commands. The program
// then prints the help of the group.
func incomplete(err *kong.ParseError) bool {
	_, wrong := errors.AsType[*wrongValue](err)
	_, ours := errors.AsType[usageError](err)
	return err.Context.Error == nil && !wrong && !ours && !selected(err.Context).Leaf()
}

// selected returns the command that the command line names, or the whole program if the command line names none.
func selected(ctx *kong.Context) *kong.Node {
	if node := ctx.Selected(); node != nil {
		return node
	}
	return ctx.Model.Node
}

// refusal returns the message for a command line that the parser refuses. The message ends with the --help of the command.
func refusal(err *kong.ParseError) string {
	node := selected(err.Context)
	return problem(err, node) + " (see " + node.FullPath() + " --help)"
}

func problem(err *kong.ParseError, node *kong.Node) string {
	if wrong, ok := errors.AsType[*wrongValue](err); ok {
		if err.Context.Error == nil && wrong.value.Flag != nil && len(wrong.value.Tag.Envs) > 0 { // it is no word of the command line
			return wrong.of(strings.Join(wrong.value.Tag.Envs, " or "))
		}
		return wrong.Error()
	}
	if ours, ok := errors.AsType[usageError](err); ok {
		return ours.Error()
	}
	if err.Context.Error != nil { // an unknown flag or command, or one argument too many
		return err.Context.Error.Error() + alternatives(err.Context, node)
	}
	var missing []string
	for _, flags := range node.AllFlags(false) {
		for _, flag := range flags {
			if flag.Required && !flag.Set {
				missing = append(missing, strings.Join(append([]string{"--" + flag.Name + " " + flag.FormatPlaceHolder()}, flag.Tag.Envs...), " or "))
			}
		}
	}
	for _, argument := range node.Positional {
		if argument.Required && !argument.Set {
			missing = append(missing, "the argument "+valueName(argument))
		}
	}
	if len(missing) == 0 {
		return err.Error()
	}
	return fmt.Sprintf("%s needs %s", node.Path(), strings.Join(missing, ", and "))
}

// alternatives returns what the user may mean by the word at which the parser stopped. It is a command of another group with
// that name, or else one of the commands of node. If the parser has named something similar, alternatives returns "".
func alternatives(ctx *kong.Context, node *kong.Node) string {
	rest := ctx.Path[len(ctx.Path)-1].Remainder()
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.Contains(ctx.Error.Error(), "did you mean") {
		return ""
	}
	var commands, elsewhere []string
	for _, child := range node.Children {
		commands = append(commands, child.Name)
	}
	for _, leaf := range node.Leaves(true) {
		if leaf.Name == rest[0] {
			elsewhere = append(elsewhere, leaf.FullPath())
		}
	}
	switch {
	case len(elsewhere) > 0:
		return "; did you mean " + strings.Join(elsewhere, ", or ") + "?"
	case len(commands) > 0:
		return "; allowed: " + strings.Join(commands, ", ")
	}
	return ""
}
