package stage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is processor time that was used since the start of each, its own and the kernel's for it.
type Usage struct {
	Postgres, Redis time.Duration
}

// Usage returns what Postgres, all of its processes together, and Redis have used.
func (s *Stage) Usage() (Usage, error) {
	postmaster := s.Postgres.PID()
	// Backends that have ended count among what their parent has waited for.
	own, waited, err := processorTime(postmaster)
	if err != nil {
		return Usage{}, err
	}
	all := own + waited
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return Usage{}, err
	}
	for _, path := range processes {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if fields := statFields(stat); len(fields) > 1 && fields[1] == strconv.Itoa(postmaster) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				if own, _, err := processorTime(pid); err == nil {
					all += own
				}
			}
		}
	}
	redis, err := s.redis.CPU()
	return Usage{Postgres: all, Redis: redis}, err
}

// statFields gives what stands behind a process's name in /proc/…/stat. The name, in parentheses, may hold
// anything.
func statFields(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// processorTime returns what a process has used, and what those of its children have that it has waited for.
func processorTime(pid int) (own, waited time.Duration, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := statFields(stat) // state, 10 others, utime, stime, cutime, cstime
	if len(fields) < 15 {
		return 0, 0, errors.New("few fields in /proc/…/stat")
	}
	var ticks [4]int
	for i := range ticks {
		if ticks[i], err = strconv.Atoi(fields[11+i]); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}
