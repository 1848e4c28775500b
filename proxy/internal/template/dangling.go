package template

import (
	"bytes"
	"strings"
)

// Dangling returns an incomplete escape that directly precedes a placeholder: "%2" in a URL, "\" or "\u00" in JSON,
// "&#x" in XML. The beginning of the inserted value would complete the escape. A target that decodes the escape would
// return the rest of the value in a form that no search finds. Dangling returns "" when there is no such escape.
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

// longestEscape is the length in bytes of the longest incomplete escape that Dangling recognises.
const longestEscape = 16

// openEscape returns the incomplete escape at the end of text, "" for none.
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
