package load

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
)

// records imports a file and returns its entries by id.
func records(t *testing.T, file string, change func(*Options)) (map[string]map[string]any, error) {
	t.Helper()
	s := &ingest{}
	o := Options{
		Inputs: []Input{{Name: "file.csv", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil }, Again: true}},
		Shape:  csvrow.Entries(), Send: s.send, Tool: csvrow.Tool{HeaderRows: 1},
		Columns: csvrow.Options{Set: []string{"group_id=g", "embeddable_id=e"}, Fallback: map[string]string{"project_id": "p"}},
	}
	change(&o)
	result, err := Run(t.Context(), o)
	if err == nil && result.Rejected > 0 {
		t.Errorf("%+v", result)
	}
	all := map[string]map[string]any{}
	for id, line := range s.stored {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, same := range []string{"group_id", "embeddable_id", "project_id", "entry_id"} {
			delete(r, same)
		}
		all[id] = r
	}
	return all, err
}

// Each file is as its tool exports it. Qualtrics: "Understanding Your Dataset" (CSV files have three rows of headers: the internal
// id, the question's text, and the import id). The others are in the form of the tool's own download.
func TestFilesOfTools(t *testing.T) {
	entry := func(contact, created, updated, data string) map[string]any {
		return map[string]any{"contact_id": contact, "created_at": created, "updated_at": updated, "entry_data": data}
	}
	for _, tt := range []struct {
		tool, file string
		want       map[string]map[string]any
	}{
		{"typeform", "#,What is your name?,Red,Other,Which one?,Other,Response Type,Start Date (UTC),Stage Date (UTC),Submit Date (UTC),Network ID,Tags,Ending\n" +
			"k3x9,\"Zoë, \"\"Z\"\"\",Red,mauve,1,blue,completed,2024-03-01 09:58:01,,2024-03-01 10:00:00,0a1b2c,,Default\n" +
			"k3y0,Ann,,,,,partial,2024-03-02 09:58:01,2024-03-02 09:59:00,,,,\n", map[string]map[string]any{
			"typeform-k3x9": entry("typeform-k3x9", "2024-03-01T09:58:01Z", "2024-03-01T10:00:00Z",
				`{"What is your name?":"Zoë, \"Z\"","Red":"Red","Other":"mauve","Which one?":1,"Other (2)":"blue","Response Type":"completed","Stage Date (UTC)":null,"Network ID":"0a1b2c","Tags":null,"Ending":"Default"}`),
			"typeform-k3y0": entry("typeform-k3y0", "2024-03-02T09:58:01Z", "2024-03-02T09:58:01Z",
				`{"What is your name?":"Ann","Red":null,"Other":null,"Which one?":null,"Other (2)":null,"Response Type":"partial","Stage Date (UTC)":"2024-03-02 09:59:00","Network ID":null,"Tags":null,"Ending":null}`),
		}},
		{"google-forms", "\"Timestamp\",\"Username\",\"How was it?\",\"Which ones?\"\n\"2024/03/01 10:00:00 AM GMT+1\",\"a@example.com\",\"5\",\"Tea;Coffee\"\n\"2024/07/01 1:02:03 PM GMT+5:30\",\"b@example.com\",\"\",\"007\"\n", map[string]map[string]any{
			"google-forms-86a516820fb9b3d062e1ef16": entry("a@example.com", "2024-03-01T09:00:00Z", "2024-03-01T09:00:00Z", `{"How was it?":5,"Which ones?":"Tea;Coffee"}`),
			"google-forms-919590c2d5151a3d65764b28": entry("b@example.com", "2024-07-01T07:32:03Z", "2024-07-01T07:32:03Z", `{"How was it?":null,"Which ones?":"007"}`),
		}},
		{"tally", "Submission ID,Respondent ID,Submitted at,Which?,Which? (Tea),Which? (Coffee)\nPgY,l0W,2024-08-11 23:25:40,\"Tea, Coffee\",TRUE,TRUE\n", map[string]map[string]any{
			"tally-PgY": entry("tally-l0W", "2024-08-11T23:25:40Z", "2024-08-11T23:25:40Z", `{"Which?":"Tea, Coffee","Which? (Tea)":"TRUE","Which? (Coffee)":"TRUE"}`),
		}},
		{"microsoft-forms", "ID,Start time,Completion time,Email,Name,Rate\n1,2024-08-11 23:25:40,2024-08-11 23:27:00,anonymous,,4\n", map[string]map[string]any{
			"microsoft-forms-497087f001c2b32df781a200": entry("microsoft-forms-497087f001c2b32df781a200", "2024-08-11T23:25:40Z", "2024-08-11T23:27:00Z", `{"ID":1,"Email":"anonymous","Name":null,"Rate":4}`),
		}},
		{"surveymonkey", "Respondent ID,Collector ID,Date Created,Date Modified,IP Address,Email Address,What is your name?,Which ones?,,\n,,,,,,Open-Ended Response,Tea,Coffee,Other (please specify)\n" +
			"114,42,03/01/2024 10:00:00 AM,03/01/2024 01:05:00 PM,192.0.2.1,,Zoë,Tea,,mate\n", map[string]map[string]any{
			"surveymonkey-114": entry("surveymonkey-114", "2024-03-01T10:00:00Z", "2024-03-01T13:05:00Z",
				`{"Collector ID":42,"IP Address":"192.0.2.1","Email Address":null,"What is your name?":"Zoë","Which ones?: Tea":"Tea","Which ones?: Coffee":null,"Which ones?: Other (please specify)":"mate"}`),
		}},
		{"qualtrics", "StartDate,EndDate,Status,Finished,RecordedDate,ResponseId,RecipientEmail,Q1,Q1\nStart Date,End Date,Response Type,Finished,Recorded Date,Response ID,Recipient Email,\"How was\nit?\",Why?\n" +
			`"{""ImportId"":""startDate"",""timeZone"":""Etc/UTC""}","{""ImportId"":""endDate""}","{""ImportId"":""status""}","{""ImportId"":""finished""}","{""ImportId"":""recordedDate""}","{""ImportId"":""_recordId""}","{""ImportId"":""recipientEmail""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2_TEXT""}"` + "\n" +
			"2024-03-01 10:00:00,2024-03-01 10:05:00,IP Address,True,2024-03-01 10:05:01,R_1abc,,5,\"because\nof it\"\n", map[string]map[string]any{
			"qualtrics-R_1abc": entry("qualtrics-R_1abc", "2024-03-01T10:00:00Z", "2024-03-01T10:05:01Z",
				`{"EndDate":"2024-03-01 10:05:00","Status":"IP Address","Finished":"True","RecipientEmail":null,"Q1":5,"Q1 (2)":"because\nof it"}`),
		}},
		{"jotform", "Submission Date,Name,E-mail,Submission ID\n\"Mar 1, 2024\",Zoë,z@example.com,5561\n2024-03-02 10:00:00,Ann,,5562\n", map[string]map[string]any{
			"jotform-5561": entry("jotform-5561", "2024-03-01T00:00:00Z", "2024-03-01T00:00:00Z", `{"Name":"Zoë","E-mail":"z@example.com"}`),
			"jotform-5562": entry("jotform-5562", "2024-03-02T10:00:00Z", "2024-03-02T10:00:00Z", `{"Name":"Ann","E-mail":null}`),
		}},
	} {
		tool, err := csvrow.FindTool(tt.tool)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{"", "\ufeff"} {
			got, err := records(t, mark+tt.file, func(o *Options) { o.Tool = tool })
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got: %s", tt.tool, err, diff)
			}
		}
	}
}

// Files of other programs are read, or refused at their start with the way out.
func TestFormsOfFiles(t *testing.T) {
	const file = "entry_id;contact_id;created_at;text\r\na;c;2024-03-01T10:00:00Z;Zoë €\r\n"
	want := map[string]map[string]any{"a": {"contact_id": "c", "created_at": "2024-03-01T10:00:00Z", "updated_at": "2024-03-01T10:00:00Z", "entry_data": `{"text":"Zoë €"}`}}
	encoded := func(encode func(string) (string, error)) string {
		t.Helper()
		text, err := encode(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	windows := encoded(charmap.Windows1252.NewEncoder().String)
	for _, tt := range []struct {
		name, in string
		change   func(*Options)
		says     string
	}{
		{"plain", file, func(*Options) {}, ""},
		{"sep", "sep=;\r\n" + file, func(*Options) {}, ""},
		{"sep and a mark", "\ufeffsep=;\n" + file, func(*Options) {}, ""},
		{"UTF-16", encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String), func(*Options) {}, ""},
		{"UTF-16 of other machines", encoded(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String), func(*Options) {}, ""},
		{"Windows-1252", windows, func(o *Options) { o.Encoding = "windows-1252" }, ""},
		{"rows before the header", "Report;2024\r\n\r\n" + file, func(o *Options) { o.SkipRows = 1 }, ""},
		{"Windows-1252 without a flag", windows, func(*Options) {}, "give --encoding windows-1252"},
		{"UTF-16 without a mark", encoded(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String), func(*Options) {}, "give --encoding utf-16le"},
		{"GBK, of which one character is valid UTF-8", "\xc3\xbb;\xd0\xd5\n", func(*Options) {}, "or another such as shift_jis or gbk"},
		{"an unknown encoding", file, func(o *Options) { o.Encoding = "ebcdic" }, `--encoding was given as "ebcdic"`},
		{"an open quote", file + "b;\"c;2024\r\nd;e\r\n", func(*Options) {}, "line 3: a quoted field that is not closed"},
		{"a workbook", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", func(*Options) {}, "save its sheet"},
		{"a zip from a pipe", "PK\x03\x04", func(*Options) {}, "unzip -p"},
		{"gzip", "\x1f\x8b\x08", func(*Options) {}, "zcat"},
		{"a page", "\r\n<!DOCTYPE html>", func(*Options) {}, "signed in"},
		{"an array", "[ {\"entry_id\":1}]", func(*Options) {}, "jq -c"},
		{"a PDF", "%PDF-1.7", func(*Options) {}, "as CSV"},
		{"Parquet", "PAR1\x15", func(*Options) {}, "Parquet"},
		{"a header alone in a longer file", "a", func(o *Options) { o.SkipRows = 1 }, "the file ends before its header"},
	} {
		got, err := records(t, tt.in, func(o *Options) { o.Format = CSV; tt.change(o) })
		switch {
		case tt.says != "":
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
			}
		case err != nil || !cmp.Equal(want, got):
			t.Errorf("%s: %v, -want +got: %s", tt.name, err, cmp.Diff(want, got))
		}
	}
	// A zip on the disk is read if it has one file.
	for _, tt := range []struct {
		files map[string]string
		says  string
	}{
		{map[string]string{"Form.csv/Form.csv": file, "__MACOSX/Form.csv/._Form.csv": "\x00"}, ""},
		{map[string]string{"a.csv": file, "b.csv": file}, "a zip of 2 files (a.csv, b.csv): unpack it"},
		{map[string]string{"[Content_Types].xml": "", "xl/workbook.xml": ""}, "save its sheet"},
		{map[string]string{"mimetype": "", "content.xml": ""}, "save its sheet"},
		{map[string]string{"a.xls": "\xd0\xcf\x11\xe0\xa1\xb1"}, "save its sheet"},
	} {
		path := filepath.Join(t.TempDir(), "file.zip")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for name, content := range tt.files {
			if w, err := z.Create(name); err != nil {
				t.Fatal(err)
			} else if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := records(t, "", func(o *Options) { o.Inputs[0].Open = func() (io.ReadCloser, error) { return os.Open(path) } })
		if tt.says == "" && (err != nil || !cmp.Equal(want, got)) || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%v: %v, %v", tt.files, got, err)
		}
	}
	// An export in another language names the flags that it needs. An export that was changed is refused.
	for _, tt := range []struct{ tool, file, says string }{
		{"google-forms", "Zeitstempel,Wie?\n", "--set created_at='{Zeitstempel}'"},
		{"microsoft-forms", "Id,Startzeit,Fertigstellungszeit,Wie?\n", "--set created_at='{Startzeit}' --set updated_at='{Fertigstellungszeit}'"},
		{"surveymonkey", "Respondent ID,Date Created\n113,03/01/2024 10:00:00 AM\n", `begins with "113", as an answer does`},
		{"qualtrics", "StartDate,ResponseId\n2024-03-01 10:00:00,R_1\n2024-03-01 10:00:00,R_2\n", "row 3 has no ImportId"},
		{"jotform", "Einreichungsdatum,Name\n", "--set created_at='{Einreichungsdatum}'"},
		{"surveymonkey", "Teilnehmer-ID,Collector-ID,Erstellt,Geändert,Wie?\n,,,,Antwort\n",
			"--set entry_id='surveymonkey-{Teilnehmer-ID}' --set contact_id='surveymonkey-{Teilnehmer-ID}' --set created_at='{Erstellt}' --set updated_at='{Geändert}'"},
	} {
		tool, err := csvrow.FindTool(tt.tool)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = records(t, tt.file, func(o *Options) { o.Tool = tool }); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %s", tt.tool, err, tt.says)
		}
	}
	// An id of which a spreadsheet dropped digits would replace another entry.
	cut := &ingest{}
	lost, err := Run(t.Context(), Options{
		Inputs: []Input{input("file.csv", "entry_id,contact_id,created_at\n5.56E+18,c,2024-03-01T10:00:00Z\n\"5,56E+18\",c,2024-03-01T10:00:00Z\n5E,c,2024-03-01T10:00:00Z\n5561234567890120000,c,2024-03-01T10:00:00Z\n")},
		Shape:  csvrow.Entries(), Send: cut.send, Columns: csvrow.Options{Set: []string{"group_id=g", "embeddable_id=e", "project_id=p"}},
	})
	if err != nil || lost.Rejected != 3 || lost.Stored != 1 {
		t.Errorf("%+v, %v", lost, err)
	}
	// One damaged line costs one record alone.
	s := &ingest{}
	damaged := bytes.ReplaceAll([]byte(file+"b;c;2024-03-01T10:00:00Z;x\r\n"), []byte(";x"), []byte(";\xff"))
	result, err := Run(t.Context(), Options{
		Inputs: []Input{{Name: "file.csv", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(damaged)), nil }}}, Shape: csvrow.Entries(), Send: s.send,
		Columns: csvrow.Options{Set: []string{"group_id=g", "embeddable_id=e"}, Fallback: map[string]string{"project_id": "p"}},
	})
	if err != nil || result.Rejected != 1 || result.Stored != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}
