// Package screen cleans the text that the program writes to the user's terminal. Records, errors of servers and answers
// of receivers may contain any text. Such text must not control the terminal or change the direction of other text.
package screen

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer writes text to a terminal. Writer escapes control characters except tabs and line breaks, characters that
// change the direction of text, and bytes that are not UTF-8. The escapes are those of JSON, such as \u001b for U+001B,
// so escaped JSON remains valid.
type Writer struct {
	terminal io.Writer
	rest     []byte // the beginning of a character that a later Write completes
}

// Of returns a [Writer] for f if f is a terminal, and f itself otherwise.
func Of(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return &Writer{terminal: f}
}

// Unwrap returns the terminal without escapes, for code that draws on the terminal, such as a progress bar.
func (w *Writer) Unwrap() io.Writer { return w.terminal }

// Write writes p to the terminal with escapes. An incomplete character at the end of p is kept until the next Write.
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
