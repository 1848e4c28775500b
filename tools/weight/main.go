// Command weight holds the size of the repository against the numbers in limits.txt. The command measures:
//
//   - for each room, the lines of product and the lines of tests. A room is a module of the workspace; in the largest modules, a
//     room is one of their first folders. Lines without code, comments, generated files and testdata do not count.
//   - the words of documentation that people wrote, but the changelog's
//   - the settings of all programs, and the keys of the chart's values
//
// A room may be over its number by 3 % or 100 lines, and the words by 3 %. Beyond that, the command prints the room with its
// numbers, and exits with 1. Git's attribute linguist-generated, in .gitattributes, names the generated files.
//
//	weight ROOT           compare
//	weight -write ROOT    write what was measured to limits.txt
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// limits is the file with the numbers, from the root of the repository.
const limits = "tools/weight/limits.txt"

func main() {
	write := flag.Bool("write", false, "write what was measured to "+limits)
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: weight [-write] ROOT")
		os.Exit(2)
	}
	faults, err := run(flag.Arg(0), *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weight:", err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, "weight:", f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// run measures the repository at root. Without write, run returns a sentence for each number that the repository exceeds, and
// prints the numbers that can be lowered.
func run(root string, write bool) ([]string, error) {
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	measured, err := measure()
	if err != nil {
		return nil, err
	}
	if write {
		return nil, save(measured)
	}
	allowed, err := load()
	if err != nil {
		return nil, err
	}
	return compare(allowed, measured), nil
}

// numbers has the size of each subject by its name, such as "services/entries tests" or "words".
type numbers map[string]int

// Names of subjects that are no rooms. A room has two subjects: its name with one of the suffixes.
const (
	words    = "words"    // of documentation
	settings = "settings" // of all programs
	values   = "values"   // keys of the chart's values.yaml
	product  = " product"
	tests    = " tests"
)

// slack returns how much a subject may exceed its number.
func slack(subject string, number int) int {
	switch {
	case strings.HasSuffix(subject, product), strings.HasSuffix(subject, tests):
		return max(100, number*3/100)
	case subject == words:
		return number * 3 / 100
	default:
		return 0
	}
}

// compare returns a sentence for each subject that exceeds its number, and prints which numbers can be lowered.
func compare(allowed, measured numbers) []string {
	var faults []string
	for _, subject := range slices.Sorted(maps.Keys(measured)) {
		is, number := measured[subject], allowed[subject]
		if most := number + slack(subject, number); is > most {
			faults = append(faults, fmt.Sprintf("%s: %d, and %s allows %d (%d at most): take something out, or raise the number in a commit of its own that says why",
				phrase(subject), is, limits, number, most))
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(allowed)) {
		if is, number := measured[subject], allowed[subject]; is < number-slack(subject, number) {
			fmt.Printf("weight: %s: %d, and %s allows %d: lower the number (go -C tools/weight run . -write ../..)\n", phrase(subject), is, limits, number)
		}
	}
	return faults
}

// phrase returns the subject as a sentence names it.
func phrase(subject string) string {
	room, kind, found := strings.Cut(subject, " ")
	switch {
	case found && " "+kind == product:
		return room + ": lines of product"
	case found:
		return room + ": lines of tests"
	case subject == words:
		return "words of documentation by hand"
	case subject == settings:
		return "settings of all programs"
	default:
		return "keys of charts/lectern/values.yaml"
	}
}

// measure returns the sizes of the repository in the working folder.
func measure() (numbers, error) {
	files, err := tracked()
	if err != nil {
		return nil, err
	}
	modules, err := modules()
	if err != nil {
		return nil, err
	}
	sizes := numbers{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			continue // removed and not committed yet, or a link to a folder
		}
		switch {
		case file == "CHANGELOG.md":
		case path.Ext(file) == ".md", path.Ext(file) == ".gotmpl":
			sizes[words] += len(strings.Fields(string(source)))
		case file == "charts/lectern/values.yaml":
			sizes[values] += len(key.FindAll(source, -1))
		default:
			if n := lines(file, source); n > 0 {
				sizes[room(file, modules)+kind(file)] += n
			}
		}
	}
	// The table of settings is made from the programs' own structs.
	table, err := os.ReadFile("docs/reference/settings.md")
	if err != nil {
		return nil, err
	}
	sizes[settings] = len(setting.FindAll(table, -1))
	return sizes, nil
}

var (
	use     = regexp.MustCompile(`(?m)^\s*\./(\S+)$`) // a line of go.work
	key     = regexp.MustCompile(`(?m)^ *[A-Za-z][\w.-]*:`)
	setting = regexp.MustCompile("(?m)^\\| `[A-Z]")
)

// tracked returns the files that Git tracks or would add, but generated ones and testdata.
func tracked() ([]string, error) {
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	check := exec.Command("git", "check-attr", "-z", "--stdin", "linguist-generated")
	check.Stdin = strings.NewReader(string(list))
	attributes, err := check.Output()
	if err != nil {
		return nil, fmt.Errorf("read .gitattributes: %w", err)
	}
	// The answer has three fields for each file: its path, the name of the attribute, the value.
	var files []string
	fields := strings.Split(string(attributes), "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if file := fields[i]; fields[i+2] == "unspecified" && !strings.Contains(file, "testdata/") {
			files = append(files, file)
		}
	}
	return files, nil
}

// modules returns the folders of the workspace's modules, the longest path first.
func modules() ([]string, error) {
	workspace, err := os.ReadFile("go.work")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, m := range use.FindAllSubmatch(workspace, -1) {
		folders = append(folders, string(m[1]))
	}
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) })
	return folders, nil
}

// room returns the room of a file: its module, or the first folder in a module of many rooms. The folder internal is no room.
func room(file string, modules []string) string {
	for _, module := range modules {
		rest, inside := strings.CutPrefix(file, module+"/")
		if !inside {
			continue
		}
		switch module {
		case "services", "shared", "cli", "k8s":
			first, _, _ := strings.Cut(strings.TrimPrefix(rest, "internal/"), "/")
			if !strings.Contains(first, ".") {
				return module + "/" + first
			}
		}
		return module
	}
	first, _, _ := strings.Cut(file, "/")
	return first
}

// testFolder matches folders whose packages serve tests alone.
var testFolder = regexp.MustCompile(`(^|/)(testing|test|e2e|[a-z]+test)/`)

// kind returns the suffix of a file's subject.
func kind(file string) string {
	if strings.HasSuffix(file, "_test.go") || strings.Contains(file, ".test.") || testFolder.MatchString(file) {
		return tests
	}
	return product
}

// lines returns how many lines of the file hold code, or 0 if the file is no program.
func lines(file string, source []byte) int {
	switch path.Ext(file) {
	case ".go":
		return goLines(source)
	case ".ts", ".tsx", ".js", ".mjs", ".css":
		return textLines(source, "//", "/*", "*")
	case ".sql":
		return textLines(source, "--")
	case "":
		if strings.HasPrefix(string(source), "#!") {
			return textLines(source, "#")
		}
	}
	return 0
}

// goLines returns how many lines of Go code have a token that is no comment. The lines of a raw string all count.
func goLines(source []byte) int {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(source))
	s.Init(file, source, nil, 0)
	count, last := 0, 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return count
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		count += end - max(first-1, last)
		last = end
	}
}

// textLines returns how many lines hold text and begin with none of the marks of a comment.
func textLines(source []byte, marks ...string) int {
	count := 0
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(line, mark) }) {
			count++
		}
	}
	return count
}

const header = `# What the repository may weigh. make lint compares; tools/weight/main.go says how each number is measured.
# A change that takes something out lowers its number. A number is raised in a commit of its own that says why.
`

// save writes the sizes to the file of limits.
func save(sizes numbers) error {
	var b strings.Builder
	b.WriteString(header)
	rooms := map[string]bool{}
	for subject := range sizes {
		if room, _, found := strings.Cut(subject, " "); found {
			rooms[room] = true
		}
	}
	for _, subject := range []string{words, settings, values} {
		fmt.Fprintf(&b, "%-30s %7d\n", subject, sizes[subject])
	}
	fmt.Fprintf(&b, "\n%-30s %7s %7s\n", "# room", "product", "tests")
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		fmt.Fprintf(&b, "%-30s %7d %7d\n", room, sizes[room+product], sizes[room+tests])
	}
	return os.WriteFile(limits, []byte(b.String()), 0o644)
}

// load reads the file of limits.
func load() (numbers, error) {
	file, err := os.Open(limits)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	allowed := numbers{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		subjects := []string{fields[0]}
		if len(fields) == 3 {
			subjects = []string{fields[0] + product, fields[0] + tests}
		}
		if len(fields) != 1+len(subjects) {
			return nil, fmt.Errorf("%s:%d: %q; allowed are lines NAME NUMBER and ROOM PRODUCT TESTS", limits, n, lines.Text())
		}
		for i, subject := range subjects {
			if allowed[subject], err = strconv.Atoi(fields[i+1]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", limits, n, err)
			}
		}
	}
	return allowed, lines.Err()
}
