package template

const hex = "0123456789ABCDEF"

// AppendURL appends value and percent-encodes every byte except the unreserved characters of RFC 3986, section 2.3.
// So the value cannot end one part of a URL and begin another.
func AppendURL(dst, value []byte) []byte {
	for _, c := range value {
		if IsUnreserved(c) {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hex[c>>4], hex[c&15])
	}
	return dst
}

// AppendForm appends value encoded as application/x-www-form-urlencoded (WHATWG URL, section 5.2).
func AppendForm(dst, value []byte) []byte {
	for _, c := range value {
		switch {
		case c == ' ':
			dst = append(dst, '+')
		case IsUnreserved(c) && c != '~' || c == '*':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// IsUnreserved reports whether c is an unreserved character of URLs (RFC 3986, section 2.3).
func IsUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
