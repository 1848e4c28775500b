package policy

import "regexp/syntax"

// unlistedHosts are hosts that nobody allows by name: the domain invalid never resolves (RFC 6761, section 6.4).
var unlistedHosts = [...]string{"qzxj.invalid", "www.qzxj.invalid"}

// AllowsAnyHost reports whether the rule, read as a destination, allows hosts that it does not name: whether it
// matches https or http URLs of a host that nobody would list. A domain names its hosts. A pattern does not when
// its host part is open (`https://[^/]+/.*`), or when that part can match the slash after the host.
func (r Rule) AllowsAnyHost() bool {
	program := r.program()
	if program == nil {
		return false
	}
	for _, host := range unlistedHosts {
		for _, start := range []string{"https://" + host + "/", "http://" + host + "/", "https://" + host + ":8443/"} {
			if len(reachable(program, after(program, start), atOpenEnd)) > 0 {
				return true
			}
		}
	}
	return false
}

// CrossesHost reports whether the rule is a pattern whose part before the path can match a slash:
// `https://.*\.example\.com/` also matches https://evil.example/x.example.com/. The slash after the host has to be
// written as such, and what stands before it has to match none: `https://[^/]+\.example\.com/`.
func (r Rule) CrossesHost() bool {
	program := r.program()
	if program == nil {
		return false
	}
	return crosses(program, after(program, "https://")) || crosses(program, after(program, "http://"))
}

// crosses follows what a compiled pattern reads from a state on, up to the first slash, and reports whether anything
// but a written slash can match that.
func crosses(program *syntax.Prog, state []uint32) bool {
	seen := map[uint32]bool{}
	for len(state) > 0 {
		var next []uint32
		for _, pc := range reachable(program, state, atOpenEnd) {
			inst := &program.Inst[pc]
			if seen[pc] || !consumes(inst) {
				continue
			}
			seen[pc] = true
			writtenSlash := inst.Op == syntax.InstRune1 && inst.Rune[0] == '/'
			if inst.MatchRune('/') && !writtenSlash {
				return true
			}
			if !writtenSlash {
				next = append(next, inst.Out)
			}
		}
		state = next
	}
	return false
}

// program returns the rule's pattern as an automaton, nil for a domain.
func (r Rule) program() *syntax.Prog {
	if r.pattern == nil {
		return nil
	}
	parsed, err := syntax.Parse(r.pattern.String(), syntax.Perl)
	if err != nil {
		return nil // not reached: regexp compiled it with the same flags
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	return program
}

// atOpenEnd holds the conditions that may hold where any text may follow.
const atOpenEnd = syntax.EmptyEndText | syntax.EmptyEndLine | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary

// after returns the instructions that a pattern continues with after it has read start from the beginning of a text.
func after(program *syntax.Prog, start string) []uint32 {
	previous, state := rune(-1), []uint32{uint32(program.Start)}
	for _, r := range start {
		var next []uint32
		for _, pc := range reachable(program, state, syntax.EmptyOpContext(previous, r)) {
			if inst := &program.Inst[pc]; consumes(inst) && inst.MatchRune(r) {
				next = append(next, inst.Out)
			}
		}
		previous, state = r, next
	}
	return state
}

// reachable returns the instructions that read a character or end the match, and that from leads to without
// reading anything, where the given conditions hold.
func reachable(program *syntax.Prog, from []uint32, conditions syntax.EmptyOp) []uint32 {
	var found []uint32
	seen := make([]bool, len(program.Inst))
	for len(from) > 0 {
		pc := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &program.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			from = append(from, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			from = append(from, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^conditions == 0 {
				from = append(from, inst.Out)
			}
		case syntax.InstFail:
		default:
			found = append(found, pc)
		}
	}
	return found
}

func consumes(inst *syntax.Inst) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}
