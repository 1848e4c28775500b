package wire

import (
	"errors"
	"math"
	"time"
)

// ErrTime is the error of [ParseTime] for a text that is not a DateTime of the API.
var ErrTime = errors.New("not a date and time: want RFC 3339 such as 2022-01-31T09:30:00Z, 2022-01-31T09:30:00.25+02:00, 2022-01-31T09:30Z, 2022-01-31T09:30:00 (UTC) or 2022-01-31 (midnight UTC), from year 0001 to 9999")

// MinTime and MaxTime bound a DateTime, in Unix microseconds: years 0001 to 9999 in UTC.
const (
	MinTime int64 = -62135596800_000000
	MaxTime int64 = 253402300799_999999
)

// ParseTime returns the Unix microseconds of a DateTime. The API, ingest, import and the command line take the same
// forms. The forms are RFC 3339 with any offset, without an offset (UTC) or without seconds, and a bare date (midnight
// UTC). ParseTime cuts the fraction of a second after six digits. ParseTime reads a space before an offset as a plus
// sign, because an unescaped "+" in a query arrives as a space. The error is [ErrTime]. (time.Parse would take one
// layout at a time, and other forms, such as a comma before the fraction.)
func ParseTime[T string | []byte](s T) (int64, error) {
	if len(s) < len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return 0, ErrTime
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	if !ok1 || !ok2 || !ok3 || year < 1 || month > 12 {
		return 0, ErrTime
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day || date.Month() != time.Month(month) { // 30 February becomes a day of March
		return 0, ErrTime
	}
	seconds := date.Unix()
	if len(s) == 10 {
		return seconds * 1e6, nil
	}
	if len(s) < len("2006-01-02T15:04") || (s[10] != 'T' && s[10] != 't') || s[13] != ':' {
		return 0, ErrTime
	}
	hour, ok1 := digits(s[11:13])
	minute, ok2 := digits(s[14:16])
	if !ok1 || !ok2 || hour > 23 || minute > 59 {
		return 0, ErrTime
	}
	seconds += int64(hour*3600 + minute*60)
	rest := s[16:]
	withSeconds := len(rest) >= len(":05") && rest[0] == ':'
	if withSeconds {
		second, ok := digits(rest[1:3])
		if !ok || second > 59 {
			return 0, ErrTime
		}
		seconds += int64(second)
		rest = rest[3:]
	}
	micros := int64(0)
	if withSeconds && len(rest) > 0 && rest[0] == '.' {
		n := 1
		for scale := int64(100000); n < len(rest) && rest[n] >= '0' && rest[n] <= '9'; n++ {
			micros += int64(rest[n]-'0') * scale
			scale /= 10
		}
		if n == 1 {
			return 0, ErrTime
		}
		rest = rest[n:]
	}
	switch {
	case len(rest) == 0 || len(rest) == 1 && (rest[0] == 'Z' || rest[0] == 'z'):
	case len(rest) == len("+02:00") && rest[3] == ':':
		h, ok1 := digits(rest[1:3])
		m, ok2 := digits(rest[4:6])
		if !ok1 || !ok2 || h > 23 || m > 59 {
			return 0, ErrTime
		}
		switch offset := int64(h*3600 + m*60); rest[0] {
		case '+', ' ':
			seconds -= offset
		case '-':
			seconds += offset
		default:
			return 0, ErrTime
		}
	default:
		return 0, ErrTime
	}
	t := seconds*1e6 + micros
	if t < MinTime || t > MaxTime {
		return 0, ErrTime
	}
	return t, nil
}

func digits[T string | []byte](s T) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// AppendTime appends Unix microseconds to dst as a quoted DateTime of the API: RFC 3339 in UTC with Z. The fraction of
// the second has up to six digits, without trailing zeros. The time must be between [MinTime] and [MaxTime].
func AppendTime(dst []byte, micros int64) []byte {
	t := Time(micros)
	y, month, d := t.Date()
	h, minute, second := t.Clock()
	m, fraction := int(month), t.Nanosecond()/1000
	// By hand: time.AppendFormat takes three times as long, and AppendTime runs for each time of each row.
	dst = append(dst, '"', byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+m/10), byte('0'+m%10), '-', byte('0'+d/10), byte('0'+d%10), 'T',
		byte('0'+h/10), byte('0'+h%10), ':', byte('0'+minute/10), byte('0'+minute%10), ':', byte('0'+second/10), byte('0'+second%10))
	if fraction != 0 {
		dst = append(dst, '.')
		for scale := 100000; fraction > 0; scale /= 10 {
			dst = append(dst, byte('0'+fraction/scale))
			fraction %= scale
		}
	}
	return append(dst, 'Z', '"')
}

// Time returns a time in Unix microseconds, as the API and the database hold it, as a time.Time in UTC.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// BeforeAll and AfterAll are the open ends of a range of times: before and after every DateTime.
const (
	BeforeAll int64 = math.MinInt64
	AfterAll  int64 = math.MaxInt64
)
