package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
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

// refusal returns the message for a command line that the parser refuses, in place of the parser's own text. The
// message ends with the --help of the command.
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
	if word := refused(err.Context); word != "" {
		return unexpected(node, word)
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
	return fmt.Sprintf("%s needs %s", node.Path(), strings.Join(missing, ", and "))
}

// refused returns the word at which the parser stopped, or "" if the parser read all words.
func refused(ctx *kong.Context) string {
	rest := ctx.Path[len(ctx.Path)-1].Remainder()
	if ctx.Error == nil || len(rest) == 0 {
		return ""
	}
	// The last of several flags in one word, such as -qz, comes without its hyphen.
	if whole := ctx.Args[len(ctx.Args)-len(rest)]; whole != rest[0] && strings.HasPrefix(whole, "-") {
		return "-" + rest[0][:1]
	}
	return rest[0]
}

// unexpected returns the message for a word that node does not take: an unknown flag or command, or one argument too
// many.
func unexpected(node *kong.Node, word string) string {
	of := ""
	if node.Parent != nil {
		of = " of " + node.Path()
	}
	if strings.HasPrefix(word, "-") && word != "-" {
		name, value, given := strings.Cut(word, "=")
		if !strings.HasPrefix(name, "--") {
			name = name[:2]
		}
		var flags []string
		groups := node.AllFlags(true)
		slices.Reverse(groups) // those of all commands come last
		for _, some := range groups {
			for _, flag := range some {
				if given && flag.Tag.Negatable != "" && name == "--no-"+flag.Name {
					return fmt.Sprintf("%s was given as %q; allowed: true, false", name, value)
				}
				flags = append(flags, "--"+flag.Name)
			}
		}
		return fmt.Sprintf("unknown flag %s%s; %s", name, of, offer(name, flags))
	}
	if len(node.Children) > 0 {
		var commands, elsewhere []string
		for _, child := range node.Children {
			commands = append(commands, child.Name)
			for _, leaf := range child.Leaves(true) {
				if leaf.Name == word {
					elsewhere = append(elsewhere, leaf.FullPath())
				}
			}
		}
		if len(elsewhere) > 0 {
			return fmt.Sprintf("unknown command %q%s; did you mean %s?", word, of, strings.Join(elsewhere, ", or "))
		}
		return fmt.Sprintf("unknown command %q%s; %s", word, of, offer(word, commands))
	}
	if len(node.Positional) == 0 {
		return fmt.Sprintf("%s was given the argument %q; it takes none", node.Path(), word)
	}
	var names []string
	for _, argument := range node.Positional {
		names = append(names, valueName(argument))
	}
	return fmt.Sprintf("%s was given one argument too many, %q; allowed: %s", node.Path(), word, strings.Join(names, " "))
}

// offer returns at most three names that are similar to word, in a question to the user. If no name is similar, offer
// returns a list of all names.
func offer(word string, names []string) string {
	distance := func(name string) int { return levenshtein.Distance(strings.ToLower(word), name, nil) }
	bare := strings.Trim(word, "-")
	var near []string
	for _, name := range names {
		begun := len(bare) > 2 && strings.HasPrefix(name, word)
		if begun || distance(name) <= min(2, (len(bare)+1)/2) {
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		return "allowed: " + strings.Join(names, ", ")
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance(a) - distance(b) })
	return "did you mean " + strings.Join(near[:min(3, len(near))], ", or ") + "?"
}
