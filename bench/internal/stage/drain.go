package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Drain is a process that exports a project several times at once until it is stopped.
type Drain struct{ *Process }

// Drained counts the received rows and the refused requests of a Drain, from the time when every list had begun.
type Drained struct {
	Rows, Refused int64
	Seconds       float64
}

// StartDrain starts a Drain that reads the list at url with key.
func (s *Stage) StartDrain(ctx context.Context, url, key string, lists int) (*Drain, error) {
	binary, err := s.Build(ctx, "bench/drain")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = []string{"URL=" + url, "KEY=" + key, "LISTS=" + strconv.Itoa(lists)}
	p, err := start(cmd, filepath.Join(s.Folder, "drain.log"))
	if err != nil {
		return nil, err
	}
	s.onClose(p.stopIfRunning)
	return &Drain{p}, nil
}

// Flowing reports whether every list has begun.
func (d *Drain) Flowing() bool {
	said, err := os.ReadFile(d.output)
	return err == nil && strings.HasPrefix(string(said), "flowing\n")
}

// Finish stops it and returns the counts since all lists had begun.
func (d *Drain) Finish() (Drained, error) {
	if err := d.Stop(); err != nil {
		return Drained{}, err
	}
	said, err := os.ReadFile(d.output)
	if err != nil {
		return Drained{}, err
	}
	var got Drained
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(said), "flowing\n")), &got); err != nil {
		return got, fmt.Errorf("drain said %q: %w", said, err)
	}
	return got, nil
}
