// Package load sends files of records to the ingest endpoint in batches, one after the other. A state file, if there is
// one, records the position after each acknowledged batch.
//
// The next run continues after an interruption at that position. If an acknowledgement was lost, its batch is sent
// again, which is safe because ingest is idempotent.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/durable"
)

// The numbers of lines and bytes at which a batch is sent. The last record of a batch may exceed batchBytes. An answer
// lists at most MaxListedRejects rejects, so a batch of that many lines gets every reject listed.
const (
	batchLines = client.MaxListedRejects
	batchBytes = 4 << 20
)

// Input is one file of records. Name is the file's name in messages and in the state file.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Again reports whether Open can be called more than once. Run opens all such files before the first batch, so
	// that a wrong file is refused before any record is sent.
	Again bool
}

// Options are the settings of one call of [Run]: the files, their format, the destination, and the functions that
// report progress.
type Options struct {
	Inputs []Input
	Format Format
	// Delimiter separates the cells of CSV; 0 means that Run guesses the delimiter. A first line such as "sep=;" in a
	// file overrides Delimiter.
	Delimiter byte
	// Guessed, if set, is called with each guessed delimiter that is not a comma.
	Guessed func(file string, delimiter byte)
	// Noted, if set, is called after a file of CSV with each of the sentences of [csvrow.Mapping.Notes].
	Noted func(file, note string)
	// Encoding is the character encoding of the files, by its name in HTML. Empty: UTF-8, or UTF-16 with a byte order
	// mark.
	Encoding string
	// Tool is the survey tool that made the CSV. SkipRows is the number of rows before the header.
	Tool     csvrow.Tool
	SkipRows int
	Shape    csvrow.Shape
	Columns  csvrow.Options
	// CSVFlags are the user's flags that only CSV takes. Run refuses a file of NDJSON if CSVFlags is not empty.
	CSVFlags []string
	// Send delivers a batch of NDJSON to the ingest endpoint, and returns the endpoint's receipt.
	Send func(ctx context.Context, ndjson []byte) (client.Receipt, error)
	// Target identifies the deployment, the resource and the mapping of columns. Run refuses the state of another
	// target, unless Restart is set.
	Target string
	// State is the path of the state file. Empty: Run keeps no state.
	State string
	// Restart makes Run ignore the state of an earlier run, and begin with the first record.
	Restart bool
	// Rejects is the path of the file for rejected lines. Run replaces its content, unless Run continues an earlier
	// run. Empty: there is no such file.
	Rejects string
	// Progress, if set, is called after each batch with the number of bytes of all files that are done. The bytes are
	// counted after the conversion to UTF-8.
	Progress func(bytes int64)
	// Rejected, if set, is called for each rejected line.
	Rejected func(file string, line int, code, message string)
}

// Summary counts the records of an import by their results. Existing counts the records that the server already had
// with the same content. Changed is a part of Stored.
type Summary struct {
	Stored   int `json:"stored"`
	Changed  int `json:"changed"` // of the stored
	Existing int `json:"existing"`
	Rejected int `json:"rejected"`
}

// Result is a [Summary], and whether the run continued an earlier run.
type Result struct {
	Summary
	// Resumed reports whether the run continued an earlier run. The Summary then also counts the records before this
	// run.
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

// line is the origin of a line of a batch: the line's number and its text in the file.
type line struct {
	number int
	raw    []byte
}

// Run loads all inputs. After an error, the state file stays, and a call with the same options but without Restart
// continues after the last acknowledged batch. After success, Run removes the state file.
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

// begin reads the state of an earlier run, checks the start of each file that can be opened again, and opens the file
// of rejects. begin cuts that file to the length in the state, which is 0 for a new import.
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

// file loads the part of one file that no earlier run loaded, and then marks the file as done in the state.
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
	if rows, ok := src.(*rowSource); ok && l.Noted != nil {
		for _, note := range rows.mapping.Notes(rows.in.Delimiter) {
			l.Noted(in.Name, note)
		}
	}
	l.state.Done += l.state.Offset
	l.state.File++
	l.state.position = position{}
	return l.state.write(l.State)
}

// resume skips the part of a file that an earlier run loaded. resume returns an error if that part has changed or is
// missing.
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

// add adds an item to the batch or, if the item is malformed, to the rejects. add ignores a blank line.
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

// settle sends the batch, unless the batch is empty. After the acknowledgement, settle writes the rejects to their
// file, and stores the position in the state file.
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
