package csvrow

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"
)

// timeFormats lists the names of the formats of times with an example of each, for the texts of help and errors.
const timeFormats = "iso (2024-01-31 17:30), text (Jan 31, 2024 5:30 PM), dmy (31.1.2024 17:30), mdy (1/31/2024 5:30 PM), mail (Wed, 31 Jan 2024 17:30:00 +0100), unix, unix-ms, excel (a day number), or a pattern such as '%d %b %Y %H:%M'"

// times reads the times in the cells of a table. Each time is in one of layouts, or a number if number is not nil.
type times struct {
	layouts []string // of package time; the one that matched last is the first
	number  func(n float64) (t time.Time, local bool)
	zone    *time.Location
	unnamed bool   // nobody named zone
	assumed bool   // a time was in the unnamed zone
	format  string // its name or pattern
}

// CheckTimes returns an error unless format and zone are valid values of Options.TimeFormat and Options.TimeZone.
func CheckTimes(format, zone string) error {
	_, err := newTimes(format, zone)
	return err
}

// newTimes returns the reader of times in the given format and zone, which are "iso" and UTC if one of them is empty.
// The result is nil if both are empty, because times are then sent unchanged.
func newTimes(format, zone string) (*times, error) {
	if format == "" && zone == "" {
		return nil, nil
	}
	t := &times{format: cmp.Or(format, "iso")}
	if zone == "" {
		zone, t.unnamed = "UTC", true
	}
	var err error
	if t.zone, err = wire.LoadZone(zone); err != nil {
		return nil, fmt.Errorf("--time-zone was given as %q; allowed: a zone of the tz database such as Europe/Berlin", zone)
	}
	switch format {
	case "", "iso":
		t.layouts = combine([]string{"2006-01-02", "2006/1/2"}, []string{"", "T15:04", "T15:04:05", " 15:04", " 15:04:05", " 3:04:05 PM", " 3:04 PM"}, offsets)
	case "text": // also as numbers: the form is a setting of an account
		t.layouts = combine([]string{"Jan 2, 2006", "January 2, 2006", "2006-01-02"}, clocks, offsets)
	case "dmy":
		t.layouts = combine([]string{"2/1/2006", "2.1.2006", "2-1-2006", "2/1/06", "2.1.06", "2-1-06"}, clocks, offsets)
	case "mdy":
		t.layouts = combine([]string{"1/2/2006", "1.2.2006", "1-2-2006", "1/2/06", "1.2.06", "1-2-06"}, clocks, offsets)
	case "mail":
		t.layouts = combine([]string{"Mon, 2 Jan 2006", "2 Jan 2006"}, []string{" 15:04:05", " 15:04"}, []string{" Z0700", " Z07:00"})
	case "unix":
		t.number = func(n float64) (time.Time, bool) { return time.UnixMicro(int64(math.Round(n * 1e6))), false }
	case "unix-ms":
		t.number = func(n float64) (time.Time, bool) { return time.UnixMicro(int64(math.Round(n * 1e3))), false }
	case "excel":
		const epoch = 25569 // the number of 1970-01-01
		t.number = func(n float64) (time.Time, bool) {
			return time.UnixMilli(int64(math.Round((n - epoch) * 86_400_000))).UTC(), true
		}
	default:
		if t.layouts, err = layoutsOf(format); err != nil {
			return nil, fmt.Errorf("--time-format was given as %q (%w); allowed: %s", format, err, timeFormats)
		}
	}
	return t, nil
}

// offsets are the layouts of package time for the offset from UTC at the end of a time. "" is a time without an
// offset.
var offsets = []string{"", "Z07:00", "Z0700", " Z07:00", " Z0700", "-07"}

var (
	// gmt matches an offset as Google Forms writes it, such as GMT+1 or GMT.
	gmt = regexp.MustCompile(`(?:GMT|UTC)(?:([+-])(\d{1,2})(?::?(\d{2}))?)?$`)
	// meridiem matches a digit and the half of the day after the digit, such as 5 pm, 5 a.m. or 5PM.
	meridiem = regexp.MustCompile(`(?i)(\d ?)([ap])\.? ?m\b\.?`)
	// words are halves of the day, zones, spaces and signs as Google Forms writes them in some languages. EST to PDT are
	// those of RFC 5322, section 4.3. Other names of several zones, such as IST, are missing.
	words = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2212", "-", "午前", "AM", "午後", "PM", "上午", "AM", "下午", "PM", "오전", "AM", "오후", "PM",
		" MEZ", " +01:00", " MESZ", " +02:00", " CET", " +01:00", " CEST", " +02:00", " OEZ", " +02:00", " OESZ", " +03:00", " EET", " +02:00", " EEST", " +03:00",
		" BST", " +01:00", " EST", " -05:00", " EDT", " -04:00", " CST", " -06:00", " CDT", " -05:00", " MST", " -07:00", " MDT", " -06:00",
		" PST", " -08:00", " PDT", " -07:00", " AKST", " -09:00", " AKDT", " -08:00", " HST", " -10:00", " AEST", " +10:00", " AEDT", " +11:00")
)

// plain rewrites the half of the day and the offset in text, such as p.m. and GMT+1, in the forms that package time
// reads.
func plain(text string) string {
	text = meridiem.ReplaceAllStringFunc(words.Replace(text), func(s string) string {
		m := meridiem.FindStringSubmatch(s)
		return m[1] + strings.ToUpper(m[2]) + "M"
	})
	return gmt.ReplaceAllStringFunc(text, func(s string) string {
		m := gmt.FindStringSubmatch(s)
		if m[1] == "" {
			return "Z"
		}
		return fmt.Sprintf("%s%02s:%02s", m[1], m[2], m[3])
	})
}

var clocks = []string{"", " 15:04", " 15:04:05", " 3:04 PM", " 3:04:05 PM", " 3:04PM", ", 15:04", ", 15:04:05", ", 3:04 PM", ", 3:04:05 PM", "T15:04:05"}

// combine returns the layouts of all combinations of a date, a clock and an offset. A date without a clock gets no
// offset.
func combine(dates, clocks, offsets []string) (all []string) {
	for _, date := range dates {
		for _, clock := range clocks {
			for _, offset := range offsets {
				if clock != "" || offset == "" {
					all = append(all, date+clock+offset)
				}
			}
		}
	}
	return all
}

// directives maps each directive of strptime to two layouts of package time. The first layout is for a directive that
// is separated from others, and may read a number of one digit. The second is for directives without a separator.
var directives = map[byte][2]string{
	'Y': {"2006", "2006"}, 'y': {"06", "06"}, 'm': {"1", "01"}, 'd': {"2", "02"}, 'e': {"2", "02"},
	'H': {"15", "15"}, 'I': {"3", "03"}, 'M': {"4", "04"}, 'S': {"5", "05"}, 'p': {"PM", "PM"},
	'b': {"Jan", "Jan"}, 'h': {"Jan", "Jan"}, 'B': {"January", "January"}, 'a': {"Mon", "Mon"}, 'A': {"Monday", "Monday"},
	'z': {"Z0700", "Z0700"},
}

var shorthands = strings.NewReplacer("%%", "%%", "%F", "%Y-%m-%d", "%T", "%H:%M:%S", "%R", "%H:%M", "%D", "%m/%d/%y",
	".%f", "", ",%f", "") // package time reads fractions without a directive

// layoutsOf translates a pattern with the directives of strptime to layouts of package time. A pattern without a year,
// with an unknown directive, or with text that looks like a part of a date is an error.
func layoutsOf(pattern string) ([]string, error) {
	pattern = shorthands.Replace(pattern)
	var layout, literal strings.Builder
	joined, seen := 0, "" // a directive that touches another has its full width
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			layout.WriteByte(pattern[i])
			literal.WriteByte(pattern[i])
			joined = 0
			continue
		}
		if i++; i == len(pattern) {
			return nil, errors.New("it ends with %")
		}
		if pattern[i] == '%' {
			layout.WriteByte('%')
			continue
		}
		forms, ok := directives[pattern[i]]
		if !ok {
			return nil, fmt.Errorf("%%%c is not known", pattern[i])
		}
		if joined == 0 && i+1 < len(pattern) && pattern[i+1] == '%' {
			joined = 1
		}
		layout.WriteString(forms[joined])
		seen += string(pattern[i])
		literal.WriteByte(' ')
	}
	other := time.Date(2021, 11, 23, 17, 38, 49, 0, time.UTC)
	switch {
	case !strings.ContainsAny(seen, "Yy"):
		return nil, errors.New("it has no year")
	case other.Format(literal.String()) != literal.String():
		return nil, errors.New("its text looks like a part of a date")
	case strings.Contains(seen, "z"):
		return []string{layout.String(), strings.Replace(layout.String(), "Z0700", "Z07:00", 1)}, nil
	}
	return []string{layout.String()}, nil
}

// timeForm is RFC 3339 in UTC, with the digits that the service stores.
const timeForm = "2006-01-02T15:04:05.999999Z"

// read returns the time in text in RFC 3339 and UTC. If the clock in the zone shows this time twice in a night, read
// returns the first of both. A time that the clock skips is an error.
func (t *times) read(text string) (string, error) {
	text = strings.TrimSpace(text)
	at, local, ok := t.parse(text)
	if !ok {
		return "", fmt.Errorf("%q is no time in the format %s; --time-format says another, such as dmy, mdy or text", text, t.format)
	}
	if local {
		t.assumed = t.assumed || t.unnamed
		wall := at
		at = time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), t.zone)
		if at.Day() != wall.Day() || at.Hour() != wall.Hour() || at.Minute() != wall.Minute() {
			return "", fmt.Errorf("%q does not exist in %s: the clock was put forward", text, t.zone)
		}
		if start, _ := at.ZoneBounds(); !start.IsZero() {
			_, offset := start.Add(-time.Second).Zone()
			if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(start) {
				at = first
			}
		}
	}
	if at = at.UTC(); at.Year() < 1 || at.Year() > 9999 {
		return "", fmt.Errorf("%q is not in the years 0001 to 9999", text)
	}
	return at.Format(timeForm), nil
}

// parse returns the time in text; ok is false if no format matches. If local is true, text has no offset, and at is
// the clock's time in the zone, stored as if it were UTC.
func (t *times) parse(text string) (at time.Time, local, ok bool) {
	if t.number != nil {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !isNumber(text) || math.Abs(n) > 1e15 {
			return at, false, false
		}
		at, local = t.number(n)
		return at, local, true
	}
	text = plain(text)
	for i, layout := range t.layouts {
		at, err := time.Parse(layout, text)
		if err == nil {
			t.layouts[0], t.layouts[i] = layout, t.layouts[0]
			return at, !strings.Contains(layout, "Z07") && !strings.Contains(layout, "-07"), true
		}
	}
	return at, false, false
}
