package policy

import "regexp/syntax"

// unlistedHosts are hosts that no rule lists: the domain invalid never resolves (RFC 6761, section 6.4).
var unlistedHosts = [...]string{"qzxj.invalid", "www.qzxj.invalid"}

// AllowsAnyHost reports whether the rule, as a destination, allows any host. It tests whether the rule can match an
// https or http URL of a host that no rule would list. A domain cannot match such a URL. A pattern can, for example
// because its host part is open (`https://[^/]+/.*`).
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

// CrossesHost reports whether the rule is a pattern whose part before the path can match a slash. For example
// `https://.*\.example\.com/` also matches https://evil.example/x.example.com/. A safe pattern has a literal slash
// after the host, and no part before that slash can match a slash: `https://[^/]+\.example\.com/`.
func (r Rule) CrossesHost() bool {
	program := r.program()
	if program == nil {
		return false
	}
	return crosses(program, after(program, "https://")) || crosses(program, after(program, "http://"))
}

// crosses follows a compiled pattern from the instructions in state to the first slash of a text. It reports whether an
// instruction other than a literal slash can match that slash.
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

// program returns the rule's pattern as an automaton, or nil if the rule is a domain.
func (r Rule) program() *syntax.Prog {
	if r.pattern == nil {
		return nil
	}
	parsed, err := syntax.Parse(r.pattern.String(), syntax.Perl)
	if err != nil {
		return nil // cannot happen: regexp compiled it with the same flags
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	return program
}

// atOpenEnd holds the empty-width conditions that can be true at a position if the following text is not known.
const atOpenEnd = syntax.EmptyEndText | syntax.EmptyEndLine | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary

// after returns the instructions with which a compiled pattern continues after it has read start at the beginning of a
// text.
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

// reachable returns the instructions that a pattern reaches from the instructions in from without reading a character,
// under the given conditions. The result has only instructions that read a character or end the match.
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
