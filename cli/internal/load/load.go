// Package load sends files of records to the ingest endpoint, in batches. It waits for the acknowledgement of each batch
// before the next, and a state file records the position. An interrupted run continues after the last acknowledged
// batch. It sends a batch again if the acknowledgement was lost, which is safe because ingest is idempotent.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/durable"
	"github.com/lectern-dev/lectern/client"
)

// Bounds of a batch. It has at most as many lines as an answer lists rejects, so that every reject is known.
const (
	batchLines = client.MaxListedRejects
	batchBytes = 4 << 20
)

// Input is one file.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Again says that Open can be called again. Run opens all such files before it sends any, to refuse them.
	Again bool
}

// Options configure a run.
type Options struct {
	Inputs []Input
	Format Format
	// Delimiter separates the cells of CSV; 0: Run guesses it.
	Delimiter byte
	// Guessed, if set, is called with the delimiter that Run guessed.
	Guessed func(file string, delimiter byte)
	// Encoding is that of the files, as HTML names it. Empty: UTF-8, or UTF-16 with its mark.
	Encoding string
	// Tool is the tool that made the CSV. SkipRows counts rows before the header.
	Tool     csvrow.Tool
	SkipRows int
	Shape    csvrow.Shape
	Columns  csvrow.Options
	// CSVFlags are the user's flags that only CSV takes. Run refuses NDJSON if there are any.
	CSVFlags []string
	// Send delivers a batch of NDJSON.
	Send func(ctx context.Context, ndjson []byte) (client.Receipt, error)
	// Target identifies deployment, resource and mapping. Run refuses the state of another target.
	Target string
	// State is the path of the state file. Empty: Run keeps no state.
	State string
	// Restart forgets the state of an earlier run.
	Restart bool
	// Rejects is the path of the file for rejected lines. Empty: none.
	Rejects string
	// Progress, if set, is called with the number of acknowledged bytes of all files.
	Progress func(bytes int64)
	// Rejected, if set, is called for each rejected line.
	Rejected func(file string, line int, code, message string)
}

// Summary counts the results of the records.
type Summary struct {
	Stored   int `json:"stored"`
	Changed  int `json:"changed"` // of the stored
	Existing int `json:"existing"`
	Rejected int `json:"rejected"`
}

// Result is a Summary, with the start of the run.
type Result struct {
	Summary
	// Resumed reports that the run continued an earlier one. The summary counts both.
	Resumed bool
}

type loader struct {
	*Options
	state   state
	rejects *os.File

	batch   []byte
	lines   []line // of batch, in order
	refused []byte // lines for the file of rejects
}

// line is the origin of a line of a batch.
type line struct {
	number int
	raw    []byte
}

// Run loads all inputs. After an error the state stays, and the same call continues from there.
func Run(ctx context.Context, o Options) (result Result, err error) {
	l := &loader{Options: &o}
	defer func() {
		result.Summary = l.state.Summary
		if l.rejects != nil {
			err = errors.Join(err, l.rejects.Close())
		}
	}()
	if err := l.begin(); err != nil {
		return result, err
	}
	result.Resumed = l.state.File > 0 || l.state.Offset > 0
	for l.state.File < len(o.Inputs) {
		if err := l.file(ctx, o.Inputs[l.state.File]); err != nil {
			return result, err
		}
	}
	return result, durable.RemoveIfThere(o.State)
}

// begin reads the state of an earlier run, and truncates the file of rejects to its length then.
func (l *loader) begin() error {
	files := make([]string, len(l.Inputs))
	for i, in := range l.Inputs {
		files[i] = in.Name
	}
	l.state = state{Target: l.Target, Files: files}
	if !l.Restart {
		found, err := readState(l.State)
		if err != nil {
			return err
		}
		if found.Target != "" {
			if found.Target != l.Target || !slices.Equal(found.Files, files) {
				return fmt.Errorf("%s is of another import (other files, target or columns): repeat that one, start over with --restart, or name another with --state", l.State)
			}
			l.state = found
		}
	}
	first := *l.Options
	first.Guessed = nil
	for _, in := range l.Inputs {
		if !in.Again {
			continue
		}
		f, err := in.Open()
		if err != nil {
			return err
		}
		_, err = open(f, in.Name, &first, csvrow.Dialect{})
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	if l.Rejects == "" {
		return nil
	}
	f, err := os.OpenFile(l.Rejects, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.rejects = f
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil && end < l.state.RejectsBytes {
		err = fmt.Errorf("%s lacks rejects of the earlier run that this one would continue: start over with --restart", l.Rejects)
	}
	// Rejects after the last acknowledged batch will occur again.
	if err == nil {
		err = f.Truncate(l.state.RejectsBytes)
	}
	if err == nil {
		_, err = f.Seek(l.state.RejectsBytes, io.SeekStart)
	}
	return err
}

// file loads the part of one file that was not loaded before.
func (l *loader) file(ctx context.Context, in Input) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	src, err := open(f, in.Name, l.Options, l.state.Dialect)
	if err != nil {
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	if l.state.Offset > 0 {
		if err := l.resume(src); err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	for {
		it, err := src.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		l.add(in.Name, it)
		if len(l.lines) >= batchLines || len(l.batch) >= batchBytes || len(l.refused) >= batchBytes {
			if err := l.settle(ctx, in.Name, src); err != nil {
				return err
			}
		}
	}
	if err := l.settle(ctx, in.Name, src); err != nil {
		return err
	}
	l.state.Done += l.state.Offset
	l.state.File++
	l.state.position = position{}
	return l.state.write(l.State)
}

// resume skips the part of a file that an earlier run loaded, if it has not changed.
func (l *loader) resume(src source) error {
	err := src.skip(l.state.position)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is shorter than the %d bytes that were imported before: start over with --restart", l.state.Offset)
	}
	if err != nil {
		return err
	}
	if src.position().SHA256 != l.state.SHA256 {
		return fmt.Errorf("its first %d bytes, which were imported before, have changed: start over with --restart", l.state.Offset)
	}
	if l.Progress != nil {
		l.Progress(l.state.Done + l.state.Offset)
	}
	return nil
}

// add adds an item to the batch or, if it is malformed, to the rejects.
func (l *loader) add(file string, it item) {
	switch {
	case it.fault != nil:
		l.reject(file, it.line, it.raw, "invalid_row", it.fault.Error())
	case it.record != nil:
		l.batch = append(append(l.batch, it.record...), '\n')
		l.lines = append(l.lines, line{it.line, slices.Clone(it.raw)})
	}
}

func (l *loader) reject(file string, number int, raw []byte, code, message string) {
	l.state.Rejected++
	if l.rejects != nil {
		l.refused = appendRejection(l.refused, rejection{File: file, Line: number, Code: code, Message: message}, raw)
	}
	if l.Rejected != nil {
		l.Rejected(file, number, code, message)
	}
}

// settle sends the batch and, after the acknowledgement, stores the position in the file.
func (l *loader) settle(ctx context.Context, file string, src source) error {
	if len(l.lines) > 0 {
		receipt, err := l.Send(ctx, l.batch)
		if err != nil {
			return fmt.Errorf("%s, lines %d to %d: %w", file, l.lines[0].number, l.lines[len(l.lines)-1].number, err)
		}
		if receipt.Rejected != len(receipt.Rejects) || receipt.Changed > receipt.Stored || receipt.Stored+receipt.Existing+receipt.Rejected != len(l.lines) {
			return fmt.Errorf("%s: the receipt of %d lines counts %d stored (%d changed), %d existing and %d rejected, and lists %d",
				file, len(l.lines), receipt.Stored, receipt.Changed, receipt.Existing, receipt.Rejected, len(receipt.Rejects))
		}
		for _, r := range receipt.Rejects {
			if r.Line < 1 || r.Line > len(l.lines) {
				return fmt.Errorf("%s: the receipt names line %d of %d", file, r.Line, len(l.lines))
			}
			from := l.lines[r.Line-1]
			l.reject(file, from.number, from.raw, r.Code, r.Message)
		}
		l.state.Stored += receipt.Stored
		l.state.Changed += receipt.Changed
		l.state.Existing += receipt.Existing
	}
	if len(l.refused) > 0 {
		if _, err := l.rejects.Write(l.refused); err != nil {
			return err
		}
		if err := l.rejects.Sync(); err != nil {
			return err
		}
		l.state.RejectsBytes += int64(len(l.refused))
	}
	l.batch, l.lines, l.refused = l.batch[:0], l.lines[:0], l.refused[:0]
	l.state.position = src.position()
	if err := l.state.write(l.State); err != nil {
		return err
	}
	if l.Progress != nil {
		l.Progress(l.state.Done + l.state.Offset)
	}
	return nil
}
