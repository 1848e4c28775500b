package template

import (
	"bytes"
	"strings"
)

// Dangling returns the end of the text before a placeholder if it is the beginning of an escape, which a part of the
// value would complete: "%2" in a URL, "\" or "\u00" in JSON, "&#x" in XML. A target that undoes the escape would show
// the rest of the value in a form that no search finds. It returns "" if no placeholder stands so.
func Dangling(text []byte) string {
	for at := 0; ; {
		from, to, _, ok := Find(text[at:])
		if !ok {
			return ""
		}
		before := text[max(0, at+from-longestEscape) : at+from]
		if bytes.ContainsAny(before, `%\&`) {
			if escape := openEscape(string(before)); escape != "" {
				return escape
			}
		}
		at += to
	}
}

// longestEscape is the length of the longest beginning of an escape that is looked for, in bytes.
const longestEscape = 16

// openEscape returns the beginning of an escape at the end of text, "" for none.
func openEscape(text string) string {
	digits := len(text) - len(strings.TrimRight(text, "0123456789abcdefABCDEF"))
	head := text[:len(text)-digits]
	slashes := func(s string) bool { return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1 }
	from := -1
	switch {
	case strings.HasSuffix(head, "%") && digits < 2:
		from = len(head) - 1
	case strings.HasSuffix(head, `\`) && digits == 0 && slashes(head):
		from = len(head) - 1
	case strings.HasSuffix(head, "u") && digits < 4 && slashes(head[:len(head)-1]):
		from = len(head) - 2
	case strings.HasSuffix(head, "x") && digits < 2 && slashes(head[:len(head)-1]):
		from = len(head) - 2
	case strings.HasSuffix(head, "&#"):
		from = len(head) - 2
	case strings.HasSuffix(strings.ToLower(head), "&#x"):
		from = len(head) - 3
	}
	if from < 0 {
		return ""
	}
	return text[from:]
}
