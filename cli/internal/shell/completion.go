package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// The completion is written here. The packages for kong (kong-completion, kongplete) offer words without their help,
// which zsh and fish show. These packages also write the program's path into the script, and offer no files in fish.

// completeWord is the first argument of the program when a shell's completion script asks the program for candidates.
const completeWord = "__complete"

// filesLine is a line of output that makes the shell's script offer files in addition to the printed candidates.
const filesLine = ":files"

// CompletionScript returns the completion script for a shell: bash, zsh or fish. For any other shell,
// CompletionScript returns "".
func CompletionScript(shell string) string {
	return map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
}

const bashScript = `# bash completion of lectern
_lectern() {
  local line current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      [[ $current != "=" ]] || current=
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _lectern lectern
`

const zshScript = `#compdef lectern
# zsh completion of lectern
_lectern() {
  local line files=
  local -a candidates
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      files=1
    else
      candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    fi
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#candidates} )) && _describe 'lectern' candidates
  [[ -n $files ]] && { compset -P '--*='; _files }
}
if [[ $funcstack[1] == _lectern ]]; then _lectern "$@"; else compdef _lectern lectern; fi
`

const fishScript = `# fish completion of lectern
function __lectern_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] __complete $words[2..-1] "$current" 2>/dev/null
end
complete -c lectern -f -a '(__lectern_complete | string match -v :files)'
complete -c lectern -F -n '__lectern_complete | string match -q :files'
`

// complete prints the candidates for the last of words, one a line, with the candidate's help after a tab, or
// [filesLine] for files. The value of a flag may be a separate word or follow "=". bash passes "=" as a separate word.
func complete(s *Session, parser *kong.Kong, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	before := slices.DeleteFunc(words[:len(words)-1], func(word string) bool { return word == "=" })
	if last == "=" {
		last = ""
	}
	node, flag, arguments := follow(parser.Model.Node, before)
	start := ""
	if name, value, given := strings.Cut(last, "="); given && strings.HasPrefix(last, "--") {
		start, last = name+"=", value
		flag = findFlag(node, strings.TrimPrefix(name, "--"))
	}
	offer := func(word, about string) {
		if strings.HasPrefix(word, last) {
			about, _, _ = strings.Cut(about, "\n")
			fmt.Fprintf(s.Out, "%s%s\t%s\n", start, word, about)
		}
	}
	switch {
	case flag != nil:
		offerValues(s, flag.Value, offer)
	case strings.HasPrefix(last, "-"):
		for _, flags := range node.AllFlags(true) {
			for _, f := range flags {
				offer("--"+f.Name, f.Help)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				offer(child.Name, child.Help)
			}
		}
		if n := len(node.Positional); n > 0 {
			offerValues(s, node.Positional[min(arguments, n-1)], offer)
		}
	}
}

// offerValues prints the values that a flag or an argument takes: its choices, the names of contexts, or [filesLine]
// for a path. Otherwise, offerValues prints how the alternatives of a placeholder begin, if there are any.
func offerValues(s *Session, v *kong.Value, offer func(word, about string)) {
	switch {
	case v.Enum != "":
		choices := v.EnumSlice()
		slices.Sort(choices)
		for _, choice := range slices.Compact(choices) {
			if choice != "" {
				offer(choice, "")
			}
		}
	case v.Tag.Type == "context":
		all, _ := s.Contexts() // a damaged file offers nothing
		for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
			offer(name, all.Contexts[name].URL)
		}
	case v.Tag.Type == "path", v.Name == "env-file", v.Name == "files":
		fmt.Fprintln(s.Out, filesLine)
	case v.Flag != nil && strings.Contains(v.Flag.PlaceHolder, "|"):
		for form := range strings.SplitSeq(v.Flag.PlaceHolder, "|") {
			if i := strings.IndexFunc(form+"A", unicode.IsUpper); i > 0 { // capital letters stand for the user's words
				offer(form[:i], form)
			}
		}
	}
}

// follow returns the command that words lead to, and how many of the words are arguments. flag is the flag whose value
// comes next, or nil.
func follow(node *kong.Node, words []string) (_ *kong.Node, flag *kong.Flag, arguments int) {
	for _, word := range words {
		if flag != nil {
			flag = nil
			continue
		}
		if strings.HasPrefix(word, "-") && word != "-" {
			name, _, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if f := findFlag(node, name); f != nil && !f.IsBool() && !given {
				flag = f
			}
			continue
		}
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		if i < 0 {
			arguments++
			continue
		}
		node = node.Children[i]
	}
	return node, flag, arguments
}

func findFlag(node *kong.Node, name string) *kong.Flag {
	for _, flags := range node.AllFlags(false) {
		for _, f := range flags {
			if f.Name == name || f.Short != 0 && string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}
