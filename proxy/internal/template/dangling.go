package template

import "strings"

// Dangling returns the end of the text before a placeholder if it is the beginning of an escape, which a part of the
// value would complete: "%2" in a URL, "\" or "\u00" in JSON, "&#x" in XML. A target that undoes the escape would show
// the rest of the value in a form that no search finds. It returns "" if no placeholder stands so.
func Dangling(text string) string {
	if !strings.Contains(text, "{{") {
		return ""
	}
	rest := []byte(text)
	before := 0 // in text, where rest begins
	for {
		from, to, _, ok := Find(rest)
		if !ok {
			return ""
		}
		if escape := openEscape(text[max(0, before+from-longestEscape) : before+from]); escape != "" {
			return escape
		}
		rest, before = rest[to:], before+to
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
