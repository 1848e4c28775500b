package stage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Usage is the processor time of each program since its start, its own and the kernel's for it.
type Usage struct {
	Postgres, Redis time.Duration
}

// Usage returns the processor time of Postgres, with all of its processes, and of Redis.
func (s *Stage) Usage() (Usage, error) {
	postgres, err := serversTime(s.Postgres.PID())
	if err != nil {
		return Usage{}, err
	}
	redis, err := s.redis.CPU()
	return Usage{Postgres: postgres, Redis: redis}, err
}

// serversTime returns the processor time of Postgres servers, with all of their processes.
func serversTime(postmasters ...int) (time.Duration, error) {
	for {
		before, err := mastersTime(postmasters)
		if err != nil {
			return 0, err
		}
		backends, err := childrenTime(postmasters)
		if err != nil {
			return 0, err
		}
		after, err := mastersTime(postmasters)
		if err != nil {
			return 0, err
		}
		// A process that was waited for meanwhile may be counted twice or not at all.
		if before.waited == after.waited {
			return after.own + after.waited + backends, nil
		}
	}
}

// spent returns the processor time of processes and of the children that they have waited for.
type spent struct{ own, waited time.Duration }

func mastersTime(pids []int) (all spent, err error) {
	for _, pid := range pids {
		own, waited, err := processorTime(pid)
		if err != nil {
			return all, err
		}
		all.own += own
		all.waited += waited
	}
	return all, nil
}

// childrenTime returns the processor time of the children that run, or that nobody has waited for.
func childrenTime(of []int) (all time.Duration, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range processes {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := statFields(stat)
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err != nil || !slices.Contains(of, parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			if own, _, err := processorTime(pid); err == nil {
				all += own
			}
		}
	}
	return all, nil
}

// statFields returns the fields after the name of a process in /proc/…/stat. The name, in parentheses, may contain
// any character.
func statFields(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// processorTime returns the processor time of a process and of the children that it has waited for.
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
