package copies

import "fmt"

// Made has the facts with which a copy, or the state of a receiver, was made. A later run needs the same facts.
type Made struct {
	Source
	// Layout is the version of the stored form; 0 for a form without versions.
	Layout int64
	// Settings are the options that must stay the same, with their flags.
	Settings []Setting
	// Masked is the text of the mask.
	Masked string
}

// Setting is the value of an option. Flag is the option's flag on the command line.
type Setting struct{ Flag, Value string }

// Check returns an error if a run with the facts of now cannot continue a copy with the facts of m. With moved, Check
// accepts another URL. The error is one sentence. The sentence begins with what, and advises to give another.
func (m Made) Check(now Made, mask *Mask, moved bool, what, another string) error {
	switch {
	case m.Layout != now.Layout:
		return fmt.Errorf("%s of layout %d; this version of lectern writes layout %d: use the version that made it, or give %s", what, m.Layout, now.Layout, another)
	case m.ProjectID != now.ProjectID:
		return fmt.Errorf("%s of project %q, not of %q: give %s", what, m.ProjectID, now.ProjectID, another)
	case m.URL != now.URL && !moved:
		return fmt.Errorf("%s of the project at %s, not at %s: if this is the same deployment at a new address, give --moved; else %s", what, m.URL, now.URL, another)
	}
	for i, s := range m.Settings {
		if value := now.Settings[i].Value; s.Value != value {
			return fmt.Errorf("%s with %s %q, not %q: give %s as before, or %s", what, s.Flag, s.Value, value, s.Flag, another)
		}
	}
	if err := mask.Check(m.Masked, another); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
