// Package screen owns what reaches the user's terminal. Records, errors of servers and answers of receivers hold any text.
// None of it may control the terminal, or show other characters than there are.
package screen

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer writes text to a terminal. Characters that control a terminal or the direction of text, and bytes that are no
// UTF-8, are written as JSON escapes them: U+001B as \u001b. So JSON stays the same JSON.
type Writer struct {
	terminal io.Writer
	rest     []byte // the beginning of a character that a later Write completes
}

// Of returns a Writer for f if f is a terminal, else f itself.
func Of(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return &Writer{terminal: f}
}

// Unwrap returns the terminal, for programs that draw on it.
func (w *Writer) Unwrap() io.Writer { return w.terminal }

// Write writes p.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	clean := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			clean = fmt.Appendf(clean, `\u00%02x`, text[0])
		case r != '\n' && r != '\t' && unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			clean = fmt.Appendf(clean, `\u%04x`, r)
		default:
			clean = append(clean, text[:size]...)
		}
		text = text[size:]
	}
	w.rest = append([]byte(nil), text...)
	if _, err := w.terminal.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}
